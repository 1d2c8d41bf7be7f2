import { randomUUID } from "node:crypto";
import { chmod, mkdir, rename, rm } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { PINNED_VERSION } from "./supported-version.ts";

/**
 * Folder of what is kept between starts and shared by all meshes of one user: `XDG_CACHE_HOME`/devmesh, else
 * `~/.cache/devmesh`.
 */
export function cacheFolder(env: NodeJS.ProcessEnv): string {
  const cacheHome = env.XDG_CACHE_HOME || join(env.HOME || homedir(), ".cache");
  return join(cacheHome, "devmesh");
}

/** Where the pinned nats-server is kept. */
export function cachedBinary(env: NodeJS.ProcessEnv): string {
  return join(cacheFolder(env), `nats-server-v${PINNED_VERSION}`);
}

/**
 * Puts a binary into the cache. `write` makes it under a name nobody else uses and only a whole one is given its real
 * name, so that neither a second launcher nor a crash half-way can leave a broken file there.
 */
export async function putIntoCache(
  binary: string,
  write: (unfinished: string) => Promise<void>,
): Promise<void> {
  await mkdir(dirname(binary), { recursive: true });
  const unfinished = `${binary}.${randomUUID()}.part`;
  try {
    await write(unfinished);
    await chmod(unfinished, 0o755);
    await rename(unfinished, binary);
  } finally {
    await rm(unfinished, { force: true });
  }
}
