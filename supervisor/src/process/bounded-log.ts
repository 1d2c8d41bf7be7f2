import { closeSync, fstatSync, openSync, renameSync, writeSync } from "node:fs";

/** Size in bytes at which a log file is renamed to `<file>.1` and a new one begins. */
const MAX_BYTES = 10 * 1024 * 1024;

/** Opens a log file (mode 0600) for appending, which cannot fill the disk. */
export function boundedLog(file: string, maxBytes: number = MAX_BYTES) {
  let descriptor: number | null = null;
  let size = 0;
  const open = () => {
    descriptor = openSync(file, "a", 0o600);
    size = fstatSync(descriptor).size;
  };
  const close = () => {
    if (descriptor !== null) closeSync(descriptor);
    descriptor = null;
  };
  open();
  return {
    /** Appends. A line that cannot be written is lost. */
    write(text: string): void {
      try {
        if (size >= maxBytes) {
          close();
          renameSync(file, `${file}.1`);
        }
        if (descriptor === null) open();
        if (descriptor !== null) size += writeSync(descriptor, text);
      } catch {
        // A full disk must not stop the mesh.
      }
    },
    close,
  };
}
