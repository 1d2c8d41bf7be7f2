import type { Clock } from "@devmesh/service-kit/clock";

/** What a permission cache is made from. */
export interface PermissionCacheOptions {
  readonly maxEntries: number;
  readonly believedForMs: number;
  readonly clock: Clock;
}

/** Answers of `devices.authorize` for a few seconds, oldest forgotten first; refusals are not kept. */
export class PermissionCache<T> {
  readonly #options: PermissionCacheOptions;
  readonly #entries = new Map<string, { readonly value: T; readonly untilMs: number }>();

  constructor(options: PermissionCacheOptions) {
    this.#options = options;
  }

  /** The answer under `id`, asked for when none is remembered. */
  async get(id: string, ask: () => Promise<T>): Promise<T> {
    const { clock, believedForMs, maxEntries } = this.#options;
    const known = this.#entries.get(id);
    if (known !== undefined && known.untilMs > clock.monotonicMs()) return known.value;
    this.#entries.delete(id);
    const askedAtMs = clock.monotonicMs();
    const value = await ask();
    if (this.#entries.size >= maxEntries) {
      const oldest = this.#entries.keys().next();
      if (!oldest.done) this.#entries.delete(oldest.value);
    }
    this.#entries.set(id, { value, untilMs: askedAtMs + believedForMs });
    return value;
  }
}
