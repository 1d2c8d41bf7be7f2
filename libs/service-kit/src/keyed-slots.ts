/** Counts what runs at a time for each key and for all of them; nothing waits. */
export class KeyedSlots {
  readonly #total: number;
  readonly #perKey = new Map<string, number>();
  #running = 0;

  constructor(options: { readonly total: number }) {
    this.#total = options.total;
  }

  /** Takes a slot of `key`, which may have `perKey`, and returns its idempotent release; null if none is free. */
  acquire(key: string, perKey: number): (() => void) | null {
    const running = this.#perKey.get(key) ?? 0;
    if (running >= perKey || this.#running >= this.#total) return null;
    this.#running++;
    this.#perKey.set(key, running + 1);
    let released = false;
    return () => {
      if (released) return;
      released = true;
      this.#running--;
      const left = (this.#perKey.get(key) ?? 1) - 1;
      if (left === 0) this.#perKey.delete(key);
      else this.#perKey.set(key, left);
    };
  }
}
