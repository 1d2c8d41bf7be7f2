import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { delimiter, join } from "node:path";

/** Executables of this name in the folders of a `PATH`, in their order. */
export async function executablesOnPath(name: string, path: string | undefined): Promise<string[]> {
  const found: string[] = [];
  for (const folder of (path ?? "").split(delimiter)) {
    if (folder === "") continue;
    const candidate = join(folder, name);
    if (await isExecutable(candidate)) found.push(candidate);
  }
  return found;
}

/** Whether this process may run the file. */
export async function isExecutable(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
