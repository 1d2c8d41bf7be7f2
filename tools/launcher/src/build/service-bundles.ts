import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "@devmesh/supervisor/process/errors";
import type { BuildOptions } from "@devmesh/supervisor/run-mesh";
import { runBuild } from "./run-build.ts";

/** What the bundles depend on beside the sources of libraries and services. */
const others = ["package-lock.json", "tools/launcher/src/build/bundle.ts"];

/** Age, in milliseconds, at which bundles of other sources are removed: a running mesh may still load parts of them. */
const removedAfterMs = 7 * 24 * 3_600_000;

/**
 * Bundles the services into a folder named by the digest of their sources, unless it exists, and returns the folder. A
 * bundle starts in half the time, since Node resolves a few files in place of some six hundred (ADR 10). Returns null,
 * after a warning, if the build fails, or when `signal` aborts: the services then run from their sources.
 */
export async function bundleServices(options: BuildOptions, signal: AbortSignal): Promise<string | null> {
  const { repository, terminal } = options;
  const bundles = join(repository, "dist");
  let fresh: string | null = null;
  try {
    signal.throwIfAborted();
    const folder = join(bundles, digestOf(repository));
    if (existsSync(folder)) return folder;
    terminal.log("Bundling the services (dist), as there is no bundle of these sources.");
    fresh = `${folder}.${process.pid}`;
    const program = join(repository, "tools", "launcher", "src", "build", "bundle.ts");
    const { ok, ended } = await runBuild(
      options,
      repository,
      ["--disable-warning=ExperimentalWarning", program, fresh],
      signal,
    );
    if (!ok) throw new Error(`the build ${ended}`);
    await rename(fresh, folder).catch((error: unknown) => {
      // Another mesh may have built the same meanwhile.
      if (!existsSync(folder)) throw error;
    });
    await removeOld(bundles);
    return folder;
  } catch (error) {
    if (!signal.aborted)
      terminal.warn(`The services are not bundled: ${messageOf(error)}. They run from their sources.`);
    return null;
  } finally {
    if (fresh !== null) await rm(fresh, { recursive: true, force: true }).catch(() => {});
  }
}

function digestOf(repository: string): string {
  const digest = createHash("sha256");
  for (const path of [...others, ...sourcesOf(repository)])
    digest
      .update(`${path}\0`)
      .update(readFileSync(join(repository, path)))
      .update("\0");
  return digest.digest("hex").slice(0, 16);
}

/** Paths below the repository, in a stable order. */
function sourcesOf(repository: string): string[] {
  const packages = ["libs", "services"].flatMap((folder) =>
    readdirSync(join(repository, folder)).map((name) => join(folder, name, "src")),
  );
  return packages
    .filter((src) => existsSync(join(repository, src)))
    .flatMap((src) =>
      readdirSync(join(repository, src), { recursive: true, encoding: "utf8" }).map((name) =>
        join(src, name),
      ),
    )
    .filter((path) => path.endsWith(".ts"))
    .sort();
}

async function removeOld(bundles: string): Promise<void> {
  for (const name of await readdir(bundles)) {
    const path = join(bundles, name);
    const { mtimeMs } = await stat(path);
    if (Date.now() - mtimeMs > removedAfterMs) await rm(path, { recursive: true, force: true });
  }
}
