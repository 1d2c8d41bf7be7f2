import { existsSync, readdirSync, statSync } from "node:fs";
import { rename, rm, utimes } from "node:fs/promises";
import { join } from "node:path";
import type { ChildRegistry } from "./process/child-registry.ts";
import { readLines } from "./process/line-reader.ts";

/** What the build is made of, below the repository: files, and folders with all below them. */
const sources = [
  "web/build",
  "web/index.html",
  "web/package.json",
  "web/public",
  "web/src",
  "web/vite.config.ts",
  "libs/contracts/src",
  "package-lock.json",
];

/** What a build is made with. */
interface DashboardBuild {
  /** Root of the repository, where `web/` is. */
  readonly repository: string;
  readonly children: ChildRegistry;
  /** For the user, on standard output and on standard error. */
  say(sentence: string): void;
  complain(line: string): void;
}

/**
 * Builds the dashboard into `web/dist` when that is missing or older than its sources. Never rejects: a mesh without a
 * dashboard is one all the same, so what went wrong is only told. Gives up when `signal` fires.
 */
export async function buildDashboard(build: DashboardBuild, signal: AbortSignal): Promise<void> {
  const { repository, children, say, complain } = build;
  const web = join(repository, "web");
  const dist = join(web, "dist");
  // Not in place: another mesh may be reading the build that is there.
  const fresh = join(web, `dist.${process.pid}`);
  try {
    if (!isStale(repository, join(dist, "index.html"))) return;
    say("Building the dashboard (web/dist), as it is missing or older than its sources.");
    const begun = new Date();
    const vite = join(repository, "node_modules", "vite", "bin", "vite.js");
    const child = children.spawn(
      process.execPath,
      [vite, "build", "--outDir", fresh, "--emptyOutDir", "--logLevel", "error"],
      {
        cwd: web,
        // Whatever this process runs for: any other value builds React's development form, larger and slower.
        env: { ...process.env, NODE_ENV: "production", NO_COLOR: "1", FORCE_COLOR: "0" },
        stdio: ["ignore", "ignore", "pipe"],
        guarded: false,
      },
    );
    const lines: string[] = [];
    if (child.process.stderr) readLines(child.process.stderr, (line) => lines.push(line));
    const give = () => child.process.kill("SIGTERM");
    signal.addEventListener("abort", give, { once: true });
    const ended = await child.ended;
    signal.removeEventListener("abort", give);
    if (signal.aborted) return;
    if (child.process.exitCode !== 0) {
      for (const line of lines.slice(-20)) complain(line);
      complain(`The dashboard was not built: vite ${ended}. ${standIn(dist)}`);
      return;
    }
    // What changes while it is built makes it stale again.
    await utimes(join(fresh, "index.html"), begun, begun);
    await rm(dist, { recursive: true, force: true });
    await rename(fresh, dist);
  } catch (error) {
    complain(
      `The dashboard was not built: ${error instanceof Error ? error.message : error}. ${standIn(dist)}`,
    );
  } finally {
    await rm(fresh, { recursive: true, force: true }).catch(() => {});
  }
}

function standIn(dist: string): string {
  return existsSync(join(dist, "index.html"))
    ? "The one that was built before is served."
    : "The API reference is served in its place.";
}

/**
 * Whether a file is missing or older than any source; a folder counts, too, as what was deleted leaves no other
 * trace.
 */
function isStale(repository: string, built: string): boolean {
  const builtMs = changedMs(built);
  if (builtMs === null) return true;
  return sources.some((source) => {
    const path = join(repository, source);
    const own = changedMs(path);
    if (own === null) return false;
    if (own > builtMs) return true;
    if (!statSync(path).isDirectory()) return false;
    return readdirSync(path, { recursive: true, encoding: "utf8" }).some(
      (name) => (changedMs(join(path, name)) ?? 0) > builtMs,
    );
  });
}

/** When a file or folder was last changed, Unix ms; null where there is none. */
function changedMs(path: string): number | null {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? null;
}
