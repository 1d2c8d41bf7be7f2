import { execFile } from "node:child_process";
import { access, mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { cacheFolder } from "@devmesh/launcher/nats-server/binary-cache";

const requirement = "paho-mqtt==2.1.0";

/** Longest time of the installation, in milliseconds. */
const INSTALL_MS = 60_000;

/**
 * The MQTT client paho as a folder for `PYTHONPATH`, installed once into the cache of nats-server; null where Python or
 * the package cannot be had.
 */
export async function findPaho(): Promise<string | null> {
  const cache = cacheFolder(process.env);
  const folder = join(cache, requirement.replace("==", "-"));
  const exists = () =>
    access(join(folder, "paho")).then(
      () => true,
      () => false,
    );
  if (await exists()) return folder;
  await mkdir(cache, { recursive: true });
  // Suites run beside each other, and each must find it whole.
  const fresh = await mkdtemp(`${folder}-`);
  try {
    const install = ["-m", "pip", "install", "--quiet", "--target", fresh, requirement];
    await promisify(execFile)("python3", install, { timeout: INSTALL_MS });
    await rename(fresh, folder);
    return folder;
  } catch {
    await rm(fresh, { recursive: true, force: true });
    return (await exists()) ? folder : null;
  }
}
