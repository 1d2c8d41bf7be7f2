import { open } from "node:fs/promises";

/** What a file or folder holds survives a power cut once this resolves. */
export async function syncToDisk(path: string): Promise<void> {
  const file = await open(path, "r");
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}
