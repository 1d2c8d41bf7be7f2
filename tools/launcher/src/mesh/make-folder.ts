import { mkdir, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { systemErrorCode } from "../process/system-error.ts";

/**
 * Makes a folder (mode 0700) and those above it that are missing; one that is there already is left as it is. Node's
 * own `recursive` does not come to an end where the system says that a folder is missing and cannot be made, as below
 * `/proc`. Throws the system's error.
 */
export async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === "EEXIST" && (await stat(path)).isDirectory()) return;
    const above = dirname(path);
    if (code !== "ENOENT" || above === path) throw error;
    await makeFolder(above);
    await mkdir(path, { mode: 0o700 });
  }
}
