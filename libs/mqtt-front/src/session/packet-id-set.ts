/** Ids of one page. */
const pageSize = 256;

/** A set of packet ids, which takes at most some 30 KB with all 65,535 of them. */
export class PacketIdSet {
  /** A bit for each id, by the number of the page. */
  readonly #pages = new Map<number, Uint8Array>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  has(id: number): boolean {
    const byte = this.#pages.get(id >> 8)?.[(id & 0xff) >> 3] ?? 0;
    return (byte & (1 << (id & 7))) !== 0;
  }

  add(id: number): void {
    if (this.has(id)) return;
    const page = this.#pages.get(id >> 8) ?? new Uint8Array(pageSize / 8);
    this.#pages.set(id >> 8, page);
    page[(id & 0xff) >> 3] = (page[(id & 0xff) >> 3] ?? 0) | (1 << (id & 7));
    this.#size++;
  }

  /** Whether it was there. */
  delete(id: number): boolean {
    const page = this.#pages.get(id >> 8);
    if (page === undefined || !this.has(id)) return false;
    page[(id & 0xff) >> 3] = (page[(id & 0xff) >> 3] ?? 0) & ~(1 << (id & 7));
    this.#size--;
    if (page.every((byte) => byte === 0)) this.#pages.delete(id >> 8);
    return true;
  }

  *[Symbol.iterator](): Generator<number> {
    for (const page of this.#pages.keys())
      for (let id = page * pageSize; id < (page + 1) * pageSize; id++) if (this.has(id)) yield id;
  }
}
