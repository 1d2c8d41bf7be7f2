import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { systemErrorCode } from "@devmesh/supervisor/process/errors";

/** The files of a folder and those below it. */
export async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

/** What a file holds; null when it has been deleted. */
export async function contentOf(file: string): Promise<Buffer | null> {
  try {
    return await readFile(file);
  } catch (error) {
    if (systemErrorCode(error) === "ENOENT") return null;
    throw error;
  }
}
