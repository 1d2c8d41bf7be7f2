export interface PieceCacheOptions {
  readonly maxBytes: number;
  /** Bytes that a piece has at most. */
  readonly pieceBytes: number;
  /** Reads a piece from its owner. */
  readonly read: (firmwareId: string, number: number) => Promise<Buffer>;
  readonly onHit: () => void;
}

/**
 * Pieces of firmware by SHA-256 and number, the last used ones: many devices that fetch one file cost its owner one
 * reading. Requests for a piece that is being read wait for it.
 */
export class PieceCache {
  readonly #options: PieceCacheOptions;
  /** In the order of their use. */
  readonly #pieces = new Map<string, Promise<Buffer>>();

  constructor(options: PieceCacheOptions) {
    this.#options = options;
  }

  get({ id, sha256 }: { readonly id: string; readonly sha256: string }, number: number): Promise<Buffer> {
    const { maxBytes, pieceBytes, read, onHit } = this.#options;
    const key = `${sha256} ${number}`;
    const cached = this.#pieces.get(key);
    this.#pieces.delete(key);
    if (cached !== undefined) onHit();
    const piece = cached ?? read(id, number);
    this.#pieces.set(key, piece);
    if (cached !== undefined) return piece;
    piece.catch(() => {
      if (this.#pieces.get(key) === piece) this.#pieces.delete(key);
    });
    for (const oldest of this.#pieces.keys()) {
      if (this.#pieces.size * pieceBytes <= maxBytes) break;
      this.#pieces.delete(oldest);
    }
    return piece;
  }
}
