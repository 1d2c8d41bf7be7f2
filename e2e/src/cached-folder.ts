import { access, mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { cacheFolder } from "@devmesh/launcher/nats-server/binary-cache";

/**
 * A folder of the cache of nats-server that `fill` fills once, for suites that run beside each other; null where it
 * rejects. The name has the versions of what is in it.
 */
export async function cachedFolder(
  name: string,
  fill: (fresh: string) => Promise<unknown>,
): Promise<string | null> {
  const cache = cacheFolder(process.env);
  const folder = join(cache, name);
  const exists = () =>
    access(folder).then(
      () => true,
      () => false,
    );
  if (await exists()) return folder;
  await mkdir(cache, { recursive: true });
  const fresh = await mkdtemp(`${folder}-`);
  try {
    await fill(fresh);
    await rename(fresh, folder);
    return folder;
  } catch {
    await rm(fresh, { recursive: true, force: true });
    return (await exists()) ? folder : null;
  }
}
