import { open } from "node:fs/promises";
import type { DataFolder } from "./data-folder.ts";
import { type LogLevel, logLevels, type ReadableLine, readableLine } from "./log-lines.ts";

/** A line with the part of the mesh that wrote it. */
export interface PartLine extends ReadableLine {
  readonly part: string;
  /** Unix ms; of a line without a time that of the line before it. */
  readonly at: number;
}

/** Most bytes that are read of a file at one time. */
const chunkBytes = 1024 * 1024;

/** The new lines of logs, those of the last call excluded; the first call returns the end of each log. */
export type ReadLogs = () => Promise<PartLine[]>;

/** Reads the logs of parts of a mesh, in the order of time, without lines below a level. */
export function logReader(folder: DataFolder, parts: readonly string[], level: LogLevel): ReadLogs {
  const readers = parts.map((part) => ({ part, read: fileReader(folder.logOf(part)) }));
  const isShown = (line: ReadableLine) => logLevels.indexOf(line.level) >= logLevels.indexOf(level);
  return async () => {
    const found = await Promise.all(
      readers.map(async ({ part, read }) => {
        let last = 0;
        return (await read()).map(readableLine).map((line): PartLine => {
          last = line.at ?? last;
          return { ...line, part, at: last };
        });
      }),
    );
    return found
      .flat()
      .filter(isShown)
      .sort((one, other) => one.at - other.at);
  };
}

/** The lines that were written since the last call. A file that is missing, or replaced, is read when it is there. */
function fileReader(path: string): () => Promise<string[]> {
  let inode: number | null = null;
  let position = 0;
  let rest = "";
  return async () => {
    await using file = await open(path).catch(() => null);
    if (file === null) return [];
    const { ino, size } = await file.stat();
    // The line at which a long file is entered is not whole.
    const isCut = inode === null && size > chunkBytes;
    if (ino !== inode || size < position) {
      position = isCut ? size - chunkBytes : 0;
      rest = "";
      inode = ino;
    }
    const length = Math.min(size - position, chunkBytes);
    if (length === 0) return [];
    const { bytesRead, buffer } = await file.read(Buffer.alloc(length), 0, length, position);
    position += bytesRead;
    const lines = (rest + buffer.toString("utf8", 0, bytesRead)).split("\n");
    rest = lines.pop() ?? "";
    return isCut ? lines.slice(1) : lines;
  };
}
