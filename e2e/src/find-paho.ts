import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { cachedFolder } from "./cached-folder.ts";

const requirement = "paho-mqtt==2.1.0";

/** Longest time of the installation, in milliseconds. */
const INSTALL_MS = 60_000;

/** The MQTT client paho as a folder for `PYTHONPATH`; null where Python or the package cannot be had. */
export async function findPaho(): Promise<string | null> {
  return await cachedFolder(requirement.replace("==", "-"), (fresh) => {
    const install = ["-m", "pip", "install", "--quiet", "--target", fresh, requirement];
    return promisify(execFile)("python3", install, { timeout: INSTALL_MS });
  });
}
