import { existsSync, readdirSync, statSync } from "node:fs";
import { rename, rm, utimes } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "@devmesh/supervisor/process/errors";
import type { BuildOptions } from "@devmesh/supervisor/run-mesh";
import { runBuild } from "./run-build.ts";

/** The files and folders that the build depends on. */
const sources = [
  "web/build",
  "web/docs.html",
  "web/index.html",
  "web/package.json",
  "web/public",
  "web/src",
  "web/vite.config.ts",
  "libs/contracts/src",
  "package-lock.json",
];

/**
 * Builds the dashboard into `web/dist` when that is missing or older than its sources. Never rejects: a mesh runs
 * without it, so a failure is only printed. Stops when `signal` fires.
 */
export async function buildDashboard(options: BuildOptions, signal: AbortSignal): Promise<void> {
  const { repository, terminal } = options;
  const web = join(repository, "web");
  const dist = join(web, "dist");
  // Not in place: another mesh may be reading the present build.
  const fresh = join(web, `dist.${process.pid}`);
  try {
    if (!isStale(repository, join(dist, "index.html"))) return;
    terminal.log("Building the dashboard (web/dist), as it is missing or older than its sources.");
    const begun = new Date();
    const vite = join(repository, "node_modules", "vite", "bin", "vite.js");
    const { ok, ended } = await runBuild(
      options,
      web,
      [vite, "build", "--outDir", fresh, "--emptyOutDir", "--logLevel", "error"],
      signal,
    );
    if (signal.aborted) return;
    if (!ok) {
      terminal.warn(`The dashboard was not built: vite ${ended}. ${fallback(dist)}`);
      return;
    }
    // A source that changed during the build makes it stale again.
    await utimes(join(fresh, "index.html"), begun, begun);
    await rm(dist, { recursive: true, force: true });
    await rename(fresh, dist);
  } catch (error) {
    terminal.warn(`The dashboard was not built: ${messageOf(error)}. ${fallback(dist)}`);
  } finally {
    await rm(fresh, { recursive: true, force: true }).catch(() => {});
  }
}

function fallback(dist: string): string {
  return existsSync(join(dist, "index.html"))
    ? "The one that was built before is served."
    : "Its addresses lead to the documents of the API.";
}

/** Whether a file is missing or older than any source. Folders count: a deletion changes nothing else. */
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
