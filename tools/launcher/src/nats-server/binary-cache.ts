import { randomUUID } from "node:crypto";
import { chmod, mkdir, rename, rm } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { PINNED_VERSION } from "./supported-version.ts";

/** The cache of all meshes of one user: `XDG_CACHE_HOME`/devmesh, else `~/.cache/devmesh`. */
export function cacheFolder(env: NodeJS.ProcessEnv): string {
  return join(env.XDG_CACHE_HOME || join(env.HOME || homedir(), ".cache"), "devmesh");
}

/** Path of the pinned nats-server. */
export function cachedBinary(env: NodeJS.ProcessEnv): string {
  return join(cacheFolder(env), `nats-server-v${PINNED_VERSION}`);
}

/** Puts a binary into the cache atomically: `write` makes it under another name, and it is renamed once whole. */
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
