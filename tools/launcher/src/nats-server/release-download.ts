import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import type { ReleaseArchive } from "./release-archive.ts";
import { fileFromTarGz } from "./tar-archive.ts";

/**
 * Longest wait, in milliseconds, for the first answer and between two pieces of a download: an unreachable host is
 * given up quickly.
 */
export interface DownloadPatience {
  readonly answerMs: number;
  readonly stallMs: number;
}

/** How a download goes on, and what ends it. */
export interface DownloadOptions {
  readonly patience?: DownloadPatience | undefined;
  readonly signal?: AbortSignal | undefined;
}

const PATIENCE: DownloadPatience = { answerMs: 5_000, stallMs: 15_000 };
/** Bound on a downloaded archive, in bytes; the real ones are about 8 MB. */
const MAX_ARCHIVE = 64 * 1024 * 1024;

/**
 * Downloads the archive, checks it against the SHA-256 in the release's own `SHA256SUMS`, and writes the server to
 * `target`.
 *
 * What the check protects from: a transfer that was cut or damaged, a cache or proxy on the way that answers with
 * something else, a mirror with a mixed-up file. It does not protect from a host that was taken over, since the list
 * comes from the same place; for that, name a binary you have verified in `NATS_SERVER_BIN`, or let Go build it (`go
 * install` checks against the public checksum database).
 *
 * Throws without touching `target` when anything is amiss.
 */
export async function downloadRelease(
  baseUrl: string,
  archive: ReleaseArchive,
  target: string,
  { patience = PATIENCE, signal }: DownloadOptions = {},
): Promise<void> {
  const base = baseUrl.replace(/\/+$/, "");
  const sums = (await download(`${base}/SHA256SUMS`, patience, signal)).toString("utf8");
  const expected = checksumOf(archive.name, sums);
  const content = await download(`${base}/${archive.name}`, patience, signal);
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
  patience: DownloadPatience,
  signal: AbortSignal | undefined,
): Promise<Buffer> {
  const abort = new AbortController();
  const either = signal === undefined ? abort.signal : AbortSignal.any([abort.signal, signal]);
  let timer = setTimeout(
    () => abort.abort(new Error(`no answer within ${patience.answerMs} ms`)),
    patience.answerMs,
  );
  try {
    const response = await fetch(url, { signal: either });
    if (!response.ok || !response.body) throw new Error(`HTTP status ${response.status}`);
    const pieces: Uint8Array[] = [];
    let size = 0;
    for await (const piece of response.body) {
      clearTimeout(timer);
      timer = setTimeout(
        () => abort.abort(new Error(`nothing came for ${patience.stallMs} ms`)),
        patience.stallMs,
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

/** fetch says only "fetch failed"; the reason a user needs is its cause. */
function innermost(error: unknown): string {
  let reason = error;
  while (reason instanceof Error && reason.cause instanceof Error) reason = reason.cause;
  return reason instanceof Error ? reason.message : String(reason);
}
