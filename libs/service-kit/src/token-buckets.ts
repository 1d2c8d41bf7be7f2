import { setNewest } from "./set-newest.ts";

/** How the buckets of one {@link TokenBuckets} fill. */
export interface TokenBucketOptions {
  /** Tokens of a full bucket. */
  readonly size: number;
  /** Tokens that come back in `everyMs` milliseconds. */
  readonly refill: number;
  /** Default 1,000. */
  readonly everyMs?: number;
  /** Most buckets kept; beyond it the least recently used one is forgotten, as if it were full. */
  readonly maxBuckets: number;
  /** Whether `take` may leave a debt, which has to be refilled first. Default: it stops at an empty bucket. */
  readonly allowDebt?: boolean;
}

interface Bucket {
  tokens: number;
  /** When `tokens` was computed. */
  atMs: number;
}

/** A token bucket for each key. All times are milliseconds on one clock of the caller's choice. */
export class TokenBuckets {
  readonly #options: TokenBucketOptions;
  readonly #buckets = new Map<string, Bucket>();

  constructor(options: TokenBucketOptions) {
    this.#options = options;
  }

  /** Number of buckets kept. */
  get count(): number {
    return this.#buckets.size;
  }

  /** Tokens of the key now, fractions included; negative for a debt. */
  tokens(key: string, nowMs: number): number {
    const { size, refill, everyMs = 1_000, maxBuckets } = this.#options;
    const bucket = this.#buckets.get(key);
    if (bucket === undefined) return size;
    setNewest(this.#buckets, key, bucket, maxBuckets);
    return Math.min(size, bucket.tokens + (Math.max(0, nowMs - bucket.atMs) / everyMs) * refill);
  }

  /** Takes tokens even where there are fewer. */
  take(key: string, nowMs: number, count = 1): void {
    const { maxBuckets, allowDebt = false } = this.#options;
    const tokens = this.tokens(key, nowMs) - count;
    const atMs = Math.max(nowMs, this.#buckets.get(key)?.atMs ?? nowMs);
    setNewest(this.#buckets, key, { tokens: allowDebt ? tokens : Math.max(0, tokens), atMs }, maxBuckets);
  }

  /** Takes one token; false, and takes nothing, where there is none. */
  tryTake(key: string, nowMs: number): boolean {
    if (this.tokens(key, nowMs) < 1) return false;
    this.take(key, nowMs);
    return true;
  }
}
