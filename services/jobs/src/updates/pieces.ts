import { firmwareBounds } from "@devmesh/contracts/model/firmware";
import { setNewest } from "@devmesh/service-kit/set-newest";
import type { FirmwareStore } from "../store/firmware-store.ts";

const { pieceBytes } = firmwareBounds;

/** Pieces of firmware in memory, of all that is pushed: 16 MB. */
const keptPieces = (16 * 1024 ** 2) / pieceBytes;

/** Reads bytes of a content; rejects where it is gone. */
export type ReadBytes = (content: string, from: number, length: number) => Promise<Buffer>;

/** Reads contents through a bounded memory, however many devices get them. */
export function createPieces(store: Pick<FirmwareStore, "readPiece">, signal: AbortSignal): ReadBytes {
  const kept = new Map<string, Promise<Uint8Array>>();

  async function load(content: string, number: number): Promise<Uint8Array> {
    const piece = await store.readPiece(content, number, signal);
    if (piece === null) throw new Error("a piece of firmware is gone");
    return piece;
  }

  function pieceOf(content: string, number: number): Promise<Uint8Array> {
    const key = `${content}/${number}`;
    const piece = kept.get(key) ?? load(content, number);
    setNewest(kept, key, piece, keptPieces);
    piece.catch(() => kept.delete(key));
    return piece;
  }

  return async (content, from, length) => {
    const parts: Uint8Array[] = [];
    for (let at = from; at < from + length; ) {
      const begin = at % pieceBytes;
      const piece = await pieceOf(content, Math.floor(at / pieceBytes));
      const part = piece.subarray(begin, begin + from + length - at);
      if (part.length === 0) throw new Error("firmware is shorter than it says");
      parts.push(part);
      at += part.length;
    }
    return Buffer.concat(parts);
  };
}
