import { readdirSync, readFileSync, type Stats, statSync } from "node:fs";
import { join, relative, sep } from "node:path";
import type { Clock } from "@devmesh/service-kit/clock";

/** How often a folder is looked at again, at most, in milliseconds. */
const lookMs = 1_000;
/**
 * A build is whole when none of its files has changed for this long, in milliseconds: a build in place writes one
 * after the other.
 */
const settledMs = 2_000;

/** Media types of what a build holds, by the end of the name; no other file is served. */
const mediaTypes: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
  png: "image/png",
  woff2: "font/woff2",
};

/** Encodings that the build may have made beside a file, the smallest first. */
const encodings = [
  ["br", ".br"],
  ["gzip", ".gz"],
] as const;

/** Where in a build those files stand whose names change with what is in them; as the path of a URL. */
export const hashedFiles = "/assets/";

/** A file of the dashboard, held whole: a build is small. */
export interface DashboardFile {
  readonly type: string;
  readonly identity: Buffer;
  readonly encoded: ReadonlyMap<string, Buffer>;
}

/**
 * A build of the dashboard. Only what stood in its folder when it was read is served, so no path can lead out of it.
 */
export interface DashboardBuild {
  readonly page: DashboardFile;
  /** By path of the URL. */
  readonly files: ReadonlyMap<string, DashboardFile>;
}

/** The build to serve now; null while there has been none. */
export type CurrentDashboard = () => DashboardBuild | null;

/**
 * The build in a folder, read now, and again when another one stands there whole. Until then, and where the folder is
 * emptied, the one before is served; and its hashed files one build longer, for pages that were loaded with it.
 */
export function followDashboard(folder: string, clock: Clock): CurrentDashboard {
  // A build that goes on at the start is read again when it is whole.
  let mark = isSettled(folder, clock.now()) ? markOf(folder) : null;
  let own = readBuild(folder);
  let build = own;
  let lookedAtMs = clock.monotonicMs();

  function look(): void {
    const found = markOf(folder);
    if (found === null || found === mark || !isSettled(folder, clock.now())) return;
    const read = readBuild(folder);
    // Another build may have begun meanwhile.
    if (read === null || markOf(folder) !== found) return;
    const old = [...(own?.files ?? [])].filter(([path]) => path.startsWith(hashedFiles));
    mark = found;
    own = read;
    build = { page: read.page, files: new Map([...old, ...read.files]) };
  }

  return () => {
    if (clock.monotonicMs() - lookedAtMs >= lookMs) {
      lookedAtMs = clock.monotonicMs();
      look();
    }
    return build;
  };
}

/** Tells one build from the next: each writes its page anew. Null without a page. */
function markOf(folder: string): string | null {
  const page = statusOf(join(folder, "index.html"));
  return page && `${page.ino} ${page.ctimeMs} ${page.size}`;
}

function statusOf(path: string): Stats | null {
  try {
    return statSync(path);
  } catch {
    return null;
  }
}

function isSettled(folder: string, now: Date): boolean {
  return filesIn(folder).every((name) => {
    const status = statusOf(join(folder, name));
    return status !== null && Math.abs(now.getTime() - status.ctimeMs) >= settledMs;
  });
}

/** Paths of a folder's files, from the folder; empty when it cannot be read. Links are left out. */
function filesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => relative(folder, join(entry.parentPath, entry.name)));
  } catch {
    return [];
  }
}

/** Null when there is none, or it goes while it is read. */
function readBuild(folder: string): DashboardBuild | null {
  const names = new Set(filesIn(folder));
  const files = new Map<string, DashboardFile>();
  try {
    for (const name of names) {
      const type = mediaTypes[name.slice(name.lastIndexOf(".") + 1)];
      if (type === undefined) continue;
      const encoded = new Map<string, Buffer>();
      for (const [encoding, ending] of encodings) {
        if (names.has(name + ending)) encoded.set(encoding, readFileSync(join(folder, name + ending)));
      }
      files.set(`/${name.split(sep).join("/")}`, {
        type,
        identity: readFileSync(join(folder, name)),
        encoded,
      });
    }
  } catch {
    return null;
  }
  const page = files.get("/index.html");
  if (page === undefined) return null;
  files.delete("/index.html");
  return { page, files };
}
