import { type FileHandle, open, stat } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";

/** Pause, in milliseconds, before the end of a file is looked at again. */
const lookMs = 250;
/** Most bytes that are read at one time. */
const chunkBytes = 256 * 1024;

/** What is written to a file from now on, without end. A file that is missing or replaced is read whole. */
export async function* followFile(path: string): AsyncGenerator<Buffer> {
  let file = await open(path).catch(() => null);
  let position = (await file?.stat())?.size ?? 0;
  try {
    for (;;) {
      if (file === null) {
        file = await open(path).catch(() => null);
        position = 0;
      }
      // Looked at before the read: what was written before the file was replaced must be read first.
      const isReplaced = file !== null && (await inodeOf(path)) !== (await file.stat()).ino;
      const chunk = file === null ? null : await read(file, position);
      if (chunk !== null) {
        position += chunk.length;
        yield chunk;
      } else if (isReplaced) {
        await file?.close();
        file = null;
      } else {
        await sleep(lookMs);
      }
    }
  } finally {
    await file?.close();
  }
}

/** The next bytes; null at the end. */
async function read(file: FileHandle, position: number): Promise<Buffer | null> {
  const { bytesRead, buffer } = await file.read(Buffer.alloc(chunkBytes), 0, chunkBytes, position);
  return bytesRead === 0 ? null : buffer.subarray(0, bytesRead);
}

async function inodeOf(path: string): Promise<number | null> {
  return (await stat(path).catch(() => null))?.ino ?? null;
}
