import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { delimiter, join } from "node:path";

/** Every executable of this name in the folders of a `PATH`, in the order in which a shell would try them. */
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
