import { setNewest } from "./set-newest.ts";

/** How a {@link TokenBucket} fills. */
export interface TokenBucketOptions {
  /** Tokens of a full bucket. */
  readonly size: number;
  /** Tokens that come back in `everyMs` milliseconds. */
  readonly refill: number;
  /** Default 1,000. */
  readonly everyMs?: number;
  /** Whether `take` may leave a debt, which has to be refilled first. Default: it stops at an empty bucket. */
  readonly allowDebt?: boolean;
}

/** How the buckets of one {@link TokenBuckets} fill. */
export interface TokenBucketsOptions extends TokenBucketOptions {
  /** Most buckets kept; beyond it the least recently used one is forgotten, as if it were full. */
  readonly maxBuckets: number;
}

/** A token bucket, full at first. All times are milliseconds on one clock of the caller's choice. */
export class TokenBucket {
  readonly #options: TokenBucketOptions;
  #tokens: number;
  /** When `#tokens` was computed; null: it is full. */
  #atMs: number | null = null;

  constructor(options: TokenBucketOptions) {
    this.#options = options;
    this.#tokens = options.size;
  }

  /** Tokens now, fractions included; negative for a debt. */
  tokens(nowMs: number): number {
    const { size, refill, everyMs = 1_000 } = this.#options;
    if (this.#atMs === null) return size;
    return Math.min(size, this.#tokens + (Math.max(0, nowMs - this.#atMs) / everyMs) * refill);
  }

  /** Takes tokens even where there are fewer. */
  take(nowMs: number, count = 1): void {
    const tokens = this.tokens(nowMs) - count;
    this.#tokens = this.#options.allowDebt === true ? tokens : Math.max(0, tokens);
    this.#atMs = Math.max(nowMs, this.#atMs ?? nowMs);
  }
}

/** A token bucket for each key. */
export class TokenBuckets {
  readonly #options: TokenBucketsOptions;
  readonly #buckets = new Map<string, TokenBucket>();

  constructor(options: TokenBucketsOptions) {
    this.#options = options;
  }

  /** Number of buckets kept. */
  get count(): number {
    return this.#buckets.size;
  }

  /** Tokens of the key now, fractions included; negative for a debt. */
  tokens(key: string, nowMs: number): number {
    const bucket = this.#buckets.get(key);
    if (bucket === undefined) return this.#options.size;
    setNewest(this.#buckets, key, bucket, this.#options.maxBuckets);
    return bucket.tokens(nowMs);
  }

  /** Takes tokens even where there are fewer. */
  take(key: string, nowMs: number, count = 1): void {
    const bucket = this.#buckets.get(key) ?? new TokenBucket(this.#options);
    bucket.take(nowMs, count);
    setNewest(this.#buckets, key, bucket, this.#options.maxBuckets);
  }

  /** Takes one token; false, and takes nothing, where there is none. */
  tryTake(key: string, nowMs: number): boolean {
    if (this.tokens(key, nowMs) < 1) return false;
    this.take(key, nowMs);
    return true;
  }
}
