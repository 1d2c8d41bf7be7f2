import { promisify } from "node:util";
import { gunzip } from "node:zlib";

const BLOCK = 512;
/** A bound on what an archive may unpack to, in bytes: nats-server is 20 to 30 MB. */
const MAX_UNPACKED = 256 * 1024 * 1024;

const unzip = promisify(gunzip);

/**
 * The content of one file of a `.tar.gz`. Nothing else is unpacked, so no path of the archive reaches the disk.
 * Throws when the archive is damaged, too large or does not hold the file.
 */
export async function fileFromTarGz(archive: Buffer, member: string): Promise<Buffer> {
  const tar = await unzip(archive, { maxOutputLength: MAX_UNPACKED });
  for (let offset = 0; offset + BLOCK <= tar.length; ) {
    const header = tar.subarray(offset, offset + BLOCK);
    const name = text(header, 0, 100);
    if (name === "") break;
    const size = Number.parseInt(text(header, 124, 12), 8);
    if (!Number.isSafeInteger(size) || size < 0)
      throw new Error("the archive is damaged: a size is unreadable");
    const start = offset + BLOCK;
    if (name === member) {
      if (start + size > tar.length) throw new Error("the archive ends in the middle of a file");
      return tar.subarray(start, start + size);
    }
    offset = start + Math.ceil(size / BLOCK) * BLOCK;
  }
  throw new Error(`the archive does not hold ${member}`);
}

function text(header: Buffer, start: number, length: number): string {
  const field = header.subarray(start, start + length);
  const end = field.indexOf(0);
  return field
    .subarray(0, end === -1 ? length : end)
    .toString("utf8")
    .trim();
}
