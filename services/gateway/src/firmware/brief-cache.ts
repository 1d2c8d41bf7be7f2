import type { Clock } from "@devmesh/service-kit/clock";
import { setNewest } from "@devmesh/service-kit/set-newest";

export interface BriefCacheOptions {
  readonly ttlMs: number;
  readonly maxEntries: number;
  readonly clock: Clock;
}

/** Answers that are used again for a moment; requests for one that is being read wait for it. Errors are not kept. */
export class BriefCache<T> {
  readonly #options: BriefCacheOptions;
  readonly #entries = new Map<string, { readonly answer: Promise<T>; readonly untilMs: number }>();

  constructor(options: BriefCacheOptions) {
    this.#options = options;
  }

  has(key: string): boolean {
    const entry = this.#entries.get(key);
    return entry !== undefined && entry.untilMs > this.#options.clock.monotonicMs();
  }

  /** The answer has changed. */
  forget(key: string): void {
    this.#entries.delete(key);
  }

  get(key: string, read: () => Promise<T>): Promise<T> {
    const { ttlMs, maxEntries, clock } = this.#options;
    const known = this.#entries.get(key);
    if (known !== undefined && known.untilMs > clock.monotonicMs()) return known.answer;
    const entry = { answer: read(), untilMs: clock.monotonicMs() + ttlMs };
    setNewest(this.#entries, key, entry, maxEntries);
    entry.answer.catch(() => {
      if (this.#entries.get(key) === entry) this.#entries.delete(key);
    });
    return entry.answer;
  }
}
