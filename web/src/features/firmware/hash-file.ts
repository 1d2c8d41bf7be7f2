import { sha256 } from "@noble/hashes/sha2.js";

/** Bytes that are read at a time: a turn of the page's loop takes some milliseconds. */
const sliceBytes = 1024 * 1024;

/**
 * The SHA-256 of a file in hex. WebCrypto takes a file whole, and is absent on pages over plain HTTP from another
 * machine. `onRead` gets the number of bytes read.
 */
export async function hashFile(
  file: Blob,
  signal: AbortSignal,
  onRead: (bytes: number) => void,
): Promise<string> {
  const hash = sha256.create();
  for (let at = 0; at < file.size; at += sliceBytes) {
    hash.update(new Uint8Array(await file.slice(at, at + sliceBytes).arrayBuffer()));
    signal.throwIfAborted();
    onRead(Math.min(file.size, at + sliceBytes));
  }
  return [...hash.digest()].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
