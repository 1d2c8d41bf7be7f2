/** What a {@link Semaphore} is made from. */
export interface SemaphoreOptions {
  readonly permits: number;
  /** Longest length of each queue; the first queue is served first. Default: one queue without a limit. */
  readonly queues?: readonly number[];
}

/** Gives permits for work of which only so much may run at a time; the rest waits in order. */
export class Semaphore {
  #free: number;
  readonly #queues: readonly { readonly limit: number; readonly waiting: (() => void)[] }[];

  constructor({ permits, queues = [Number.POSITIVE_INFINITY] }: SemaphoreOptions) {
    this.#free = permits;
    this.#queues = queues.map((limit) => ({ limit, waiting: [] }));
  }

  /** Resolves with a permit, whose disposal gives it to the next; null at once when the queue is full. */
  async acquire(queue = 0): Promise<Disposable | null> {
    if (this.#free > 0) {
      this.#free--;
      return this.#permit();
    }
    const { limit = 0, waiting = [] } = this.#queues[queue] ?? {};
    if (waiting.length >= limit) return null;
    await new Promise<void>((resolve) => waiting.push(resolve));
    return this.#permit();
  }

  #permit(): Disposable {
    return {
      [Symbol.dispose]: () => {
        const next = this.#queues.find(({ waiting }) => waiting.length > 0)?.waiting.shift();
        if (next === undefined) this.#free++;
        else next();
      },
    };
  }
}
