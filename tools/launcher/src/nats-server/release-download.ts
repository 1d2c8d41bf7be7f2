import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { messageOf } from "@devmesh/supervisor/process/errors";
import { PINNED_VERSION } from "./supported-version.ts";

const platforms: Readonly<Record<string, string>> = { linux: "linux", darwin: "darwin" };
const architectures: Readonly<Record<string, string>> = { x64: "amd64", arm64: "arm64" };

/** One file of the pinned release of nats-server. */
export interface ReleaseArchive {
  /** Name of the archive, as in the release's `SHA256SUMS`. */
  readonly name: string;
  /** Path of the server inside the archive. */
  readonly member: string;
}

/** The folder the release's files are downloaded from, unless `NATS_SERVER_DOWNLOAD_URL` names a mirror. */
export const RELEASE_URL = `https://github.com/nats-io/nats-server/releases/download/v${PINNED_VERSION}`;

/**
 * The archive for a platform and CPU as Node names them (`process.platform`, `process.arch`); null where none is
 * published that the mesh supports.
 */
export function releaseArchive(platform: string, architecture: string): ReleaseArchive | null {
  const os = platforms[platform];
  const cpu = architectures[architecture];
  if (!os || !cpu) return null;
  const folder = `nats-server-v${PINNED_VERSION}-${os}-${cpu}`;
  return { name: `${folder}.tar.gz`, member: `${folder}/nats-server` };
}

/** Longest waits, in milliseconds, for the first answer and between two pieces of a download. */
export interface DownloadTimeouts {
  readonly answerMs: number;
  readonly stallMs: number;
}

const TIMEOUTS: DownloadTimeouts = { answerMs: 5_000, stallMs: 15_000 };
/** Bound on a downloaded archive, in bytes; the real ones are about 8 MB. */
const MAX_ARCHIVE = 64 * 1024 * 1024;
/** Bound on an unpacked archive, in bytes: nats-server is 20 to 30 MB. */
const MAX_UNPACKED = 256 * 1024 * 1024;
const TAR_BLOCK = 512;
const unzip = promisify(gunzip);

/**
 * Downloads the archive, checks it against the release's `SHA256SUMS`, and writes the server to `target`; throws before
 * that when anything fails. The check detects a damaged or mixed-up file, not a host that was taken over.
 */
export async function downloadRelease(
  baseUrl: string,
  archive: ReleaseArchive,
  target: string,
  {
    timeouts = TIMEOUTS,
    signal,
  }: { timeouts?: DownloadTimeouts | undefined; signal?: AbortSignal | undefined },
): Promise<void> {
  const base = baseUrl.replace(/\/+$/, "");
  const sums = (await download(`${base}/SHA256SUMS`, timeouts, signal)).toString("utf8");
  const expected = checksumOf(archive.name, sums);
  const content = await download(`${base}/${archive.name}`, timeouts, signal);
  const actual = createHash("sha256").update(content).digest("hex");
  if (actual !== expected) {
    throw new Error(`the checksum of ${archive.name} is wrong: ${actual} instead of ${expected}`);
  }
  await writeFile(target, await fileFromTarGz(content, archive.member), { mode: 0o755 });
}

function checksumOf(name: string, sums: string): string {
  for (const line of sums.split("\n")) {
    const [sum, file] = line.trim().split(/\s+\*?/);
    if (file === name && sum && /^[0-9a-f]{64}$/i.test(sum)) return sum.toLowerCase();
  }
  throw new Error(`SHA256SUMS of the release does not list ${name}`);
}

async function download(
  url: string,
  timeouts: DownloadTimeouts,
  signal: AbortSignal | undefined,
): Promise<Buffer> {
  const abort = new AbortController();
  const either = signal === undefined ? abort.signal : AbortSignal.any([abort.signal, signal]);
  let timer = setTimeout(
    () => abort.abort(new Error(`no answer within ${timeouts.answerMs} ms`)),
    timeouts.answerMs,
  );
  try {
    const response = await fetch(url, { signal: either });
    if (!response.ok || !response.body) throw new Error(`HTTP status ${response.status}`);
    const pieces: Uint8Array[] = [];
    let size = 0;
    for await (const piece of response.body) {
      clearTimeout(timer);
      timer = setTimeout(
        () => abort.abort(new Error(`nothing came for ${timeouts.stallMs} ms`)),
        timeouts.stallMs,
      );
      size += piece.length;
      if (size > MAX_ARCHIVE) throw new Error(`it is larger than ${MAX_ARCHIVE} bytes`);
      pieces.push(piece);
    }
    return Buffer.concat(pieces);
  } catch (cause) {
    throw new Error(`${url} could not be downloaded: ${innermost(cause)}`, { cause });
  } finally {
    clearTimeout(timer);
    abort.abort();
  }
}

/** The message of `fetch` is only "fetch failed"; its cause has the reason. */
function innermost(error: unknown): string {
  let reason = error;
  while (reason instanceof Error && reason.cause instanceof Error) reason = reason.cause;
  return messageOf(reason);
}

/**
 * The content of one file of a `.tar.gz`; throws when the archive is damaged, too large or does not hold the file.
 * Nothing else is unpacked, so no path of the archive reaches the disk.
 */
async function fileFromTarGz(archive: Buffer, member: string): Promise<Buffer> {
  const tar = await unzip(archive, { maxOutputLength: MAX_UNPACKED });
  for (let offset = 0; offset + TAR_BLOCK <= tar.length; ) {
    const header = tar.subarray(offset, offset + TAR_BLOCK);
    const name = fieldOf(header, 0, 100);
    if (name === "") break;
    const size = Number.parseInt(fieldOf(header, 124, 12), 8);
    if (!Number.isSafeInteger(size) || size < 0)
      throw new Error("the archive is damaged: a size is unreadable");
    const start = offset + TAR_BLOCK;
    if (name === member) {
      if (start + size > tar.length) throw new Error("the archive ends in the middle of a file");
      return tar.subarray(start, start + size);
    }
    offset = start + Math.ceil(size / TAR_BLOCK) * TAR_BLOCK;
  }
  throw new Error(`the archive does not hold ${member}`);
}

function fieldOf(header: Buffer, start: number, length: number): string {
  const field = header.subarray(start, start + length);
  const end = field.indexOf(0);
  return field
    .subarray(0, end === -1 ? length : end)
    .toString("utf8")
    .trim();
}
