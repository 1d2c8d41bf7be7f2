import { readdirSync, readFileSync, type Stats, statSync } from "node:fs";
import { join, relative, sep } from "node:path";
import type { Clock } from "@devmesh/service-kit/clock";
import type { EncodedFile } from "../http/encoded-file.ts";

/** Shortest time between two looks at a folder, in milliseconds. */
const lookMs = 1_000;
/** A build is complete when none of its files has changed for this long, in milliseconds. */
const settledMs = 2_000;

/** Media types by file extension; other files are not served. */
const mediaTypes: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
  png: "image/png",
  woff2: "font/woff2",
};

/** Encodings that a build may have made of a file, the smallest first. */
const encodings = [
  ["br", ".br"],
  ["gzip", ".gz"],
] as const;

/** URL path of the files whose names contain a digest of their content. */
export const hashedFiles = "/assets/";

/** A build of the dashboard in memory, so that no path of a URL can lead out of its folder. */
export interface DashboardBuild {
  readonly page: EncodedFile;
  /** By path of the URL. */
  readonly files: ReadonlyMap<string, EncodedFile>;
}

/** The build to serve; null while there has been none. */
export type CurrentDashboard = () => DashboardBuild | null;

/**
 * The build in a folder, read again when a newer one is complete. Until then, and when the folder is emptied, the last
 * one is served; its hashed files one build longer, for pages that were loaded with it.
 */
export function followDashboard(folder: string, clock: Clock): CurrentDashboard {
  // An incomplete build is read again when it is complete.
  let version = isSettled(folder, clock.now()) ? versionOf(folder) : null;
  let own = readBuild(folder);
  let build = own;
  let lookedAtMs = clock.monotonicMs();

  function look(): void {
    const found = versionOf(folder);
    if (found === null || found === version || !isSettled(folder, clock.now())) return;
    const read = readBuild(folder);
    // Another build may have begun meanwhile.
    if (read === null || versionOf(folder) !== found) return;
    const old = [...(own?.files ?? [])].filter(([path]) => path.startsWith(hashedFiles));
    version = found;
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

/** Changes with each build, which writes the page again; null without a page. */
function versionOf(folder: string): string | null {
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

/** Relative paths of a folder's files without links; empty when it cannot be read. */
function filesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => relative(folder, join(entry.parentPath, entry.name)));
  } catch {
    return [];
  }
}

/** Null when there is none, or it changes while it is read. */
function readBuild(folder: string): DashboardBuild | null {
  const names = new Set(filesIn(folder));
  const files = new Map<string, EncodedFile>();
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
