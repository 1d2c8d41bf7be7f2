import { setTimeout as sleep } from "node:timers/promises";

/** Requests of a download, at least; a piece has so many bytes at least and at most. */
const pieces = 20;
const pieceBytes = { min: 1_024, max: 256 * 1_024 };
const firstBytes = 1_024;

const requestMs = 15_000;
/** Attempts of a request that failed, and the pause between them where the answer names none. */
const maxTries = 10;
const retryMs = 1_000;

export interface DownloadOptions {
  readonly url: string;
  /** Called when so many bytes have come, of so many; the next piece is asked for when it resolves. */
  readonly onProgress: (bytes: number, size: number) => Promise<void>;
  readonly signal: AbortSignal;
}

interface Piece {
  readonly bytes: Buffer;
  /** Of the whole file. */
  readonly size: number;
  readonly etag: string | null;
}

/** A file that was downloaded, and the tag that it had. */
export interface Downloaded {
  readonly image: Buffer;
  readonly etag: string | null;
}

/** Downloads a file in ranges, each again where it fails. Throws, without the URL, when it cannot. */
export async function download({ url, onProgress, signal }: DownloadOptions): Promise<Downloaded> {
  const received: Buffer[] = [];
  let first: Piece | undefined;
  for (let at = 0; first === undefined || at < first.size; ) {
    const share = Math.ceil((first?.size ?? 0) / pieces);
    const length: number =
      first === undefined ? firstBytes : Math.min(pieceBytes.max, Math.max(pieceBytes.min, share));
    const piece = await fetchPiece(url, { start: at, length, etag: first?.etag ?? null }, signal);
    first ??= piece;
    received.push(piece.bytes);
    at += piece.bytes.length;
    await onProgress(at, first.size);
  }
  return { image: Buffer.concat(received), etag: first.etag };
}

async function fetchPiece(
  url: string,
  { start, length, etag }: { readonly start: number; readonly length: number; readonly etag: string | null },
  signal: AbortSignal,
): Promise<Piece> {
  const headers = {
    Range: `bytes=${start}-${start + length - 1}`,
    ...(etag !== null && { "If-Range": etag }),
  };
  for (let tries = 1; ; tries++) {
    signal.throwIfAborted();
    let waitMs = retryMs;
    let status = 0;
    try {
      const answer = await fetch(url, {
        headers,
        signal: AbortSignal.any([signal, AbortSignal.timeout(requestMs)]),
      });
      status = answer.status;
      if (status === 206) {
        const size = Number(answer.headers.get("content-range")?.split("/")[1]);
        return { bytes: Buffer.from(await answer.arrayBuffer()), size, etag: answer.headers.get("etag") };
      }
      await answer.body?.cancel();
      waitMs = 1_000 * Number(answer.headers.get("retry-after") ?? 1);
    } catch {
      // The network: it is tried again.
    }
    const isFinal = status >= 200 && status < 500 && status !== 429;
    if (isFinal || tries === maxTries) throw new Error(`the download failed: HTTP status ${status}`);
    await sleep(waitMs, undefined, { signal });
  }
}
