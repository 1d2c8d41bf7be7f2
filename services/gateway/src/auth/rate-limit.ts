import type { Clock } from "@devmesh/service-kit/clock";
import { RequestRefused } from "../http/gateway-errors.ts";

/**
 * Charges the caller's rate with tokens beyond the one that each request costs, before the work that they pay for.
 * Throws `rate_limited` while the key is in debt for an earlier request.
 */
export type Charge = (tokens: number) => void;

/** The tokens of one key or address. */
interface Bucket {
  tokens: number;
  filledAtMs: number;
}

/** What a rate limit is made from. */
export interface RateLimitOptions {
  /** Stands in the `RateLimit` headers. */
  readonly name: string;
  /** Tokens a second. A bucket holds twice as many (api.md, Conventions). */
  readonly perSecond: number;
  /** Most buckets kept; beyond it the least recently used one is forgotten, as if it were full. */
  readonly maxBuckets: number;
  readonly clock: Clock;
}

/** Token buckets of one kind of caller, in the memory of this replica (api.md, Conventions). */
export class RateLimit {
  /** Value of the `RateLimit-Policy` header (draft-ietf-httpapi-ratelimit-headers-10). */
  readonly policy: string;
  readonly #name: string;
  readonly #perMs: number;
  readonly #size: number;
  readonly #maxBuckets: number;
  readonly #clock: Clock;
  readonly #buckets = new Map<string, Bucket>();

  constructor({ name, perSecond, maxBuckets, clock }: RateLimitOptions) {
    this.#name = name;
    this.#perMs = perSecond / 1000;
    this.#size = Math.max(1, perSecond * 2);
    this.#maxBuckets = maxBuckets;
    this.#clock = clock;
    this.policy = `"${name}";q=${Math.floor(this.#size)};w=${Math.ceil(this.#size / perSecond)}`;
  }

  /** Takes one token and writes the headers that say what is left; throws `rate_limited` when there is none. */
  take(key: string, headers: Record<string, string>): void {
    const bucket = this.#filled(key);
    const granted = bucket.tokens >= 1;
    if (granted) bucket.tokens -= 1;
    headers["RateLimit-Policy"] = this.policy;
    headers.RateLimit = this.#state(bucket);
    if (!granted) throw this.#refusal(bucket);
  }

  /** Throws `rate_limited` when the bucket is empty, and takes nothing. */
  assertNotEmpty(key: string): void {
    if (this.#buckets.size === 0) return;
    const bucket = this.#filled(key);
    if (bucket.tokens < 1) throw this.#refusal(bucket);
  }

  /**
   * Takes one token even where there is none: the debt is waited for, so that a burst cannot outrun its own answers.
   */
  charge(key: string): void {
    this.#filled(key).tokens -= 1;
  }

  /**
   * Takes further tokens for a request that `take` has granted and updates the headers. One request may leave a debt
   * of any size; throws `rate_limited`, and takes nothing, while an earlier debt is not paid.
   */
  surcharge(key: string, tokens: number, headers: Record<string, string>): void {
    const bucket = this.#filled(key);
    const granted = bucket.tokens >= 0;
    if (granted) bucket.tokens -= tokens;
    headers.RateLimit = this.#state(bucket);
    if (!granted) throw this.#refusal(bucket);
  }

  /** Buckets held now. */
  get size(): number {
    return this.#buckets.size;
  }

  #filled(key: string): Bucket {
    const nowMs = this.#clock.monotonicMs();
    let bucket = this.#buckets.get(key);
    if (bucket === undefined) {
      bucket = { tokens: this.#size, filledAtMs: nowMs };
      if (this.#buckets.size >= this.#maxBuckets) this.#forgetOldest();
    } else {
      bucket.tokens = Math.min(this.#size, bucket.tokens + (nowMs - bucket.filledAtMs) * this.#perMs);
      bucket.filledAtMs = nowMs;
      this.#buckets.delete(key);
    }
    this.#buckets.set(key, bucket);
    return bucket;
  }

  #forgetOldest(): void {
    const oldest = this.#buckets.keys().next();
    if (!oldest.done) this.#buckets.delete(oldest.value);
  }

  #state(bucket: Bucket): string {
    const secondsToFull = Math.ceil((this.#size - bucket.tokens) / this.#perMs / 1000);
    return `"${this.#name}";r=${Math.max(0, Math.floor(bucket.tokens))};t=${secondsToFull}`;
  }

  #refusal(bucket: Bucket): RequestRefused {
    const seconds = Math.max(1, Math.ceil((1 - bucket.tokens) / this.#perMs / 1000));
    return new RequestRefused("rate_limited", {
      headers: {
        "Retry-After": String(seconds),
        "RateLimit-Policy": this.policy,
        RateLimit: this.#state(bucket),
      },
    });
  }
}

/** The address that a rate is counted on: of IPv6 the network of 64 bits, all of which one caller holds. */
export function rateAddress(address: string | undefined): string {
  if (address === undefined || address === "") return "unknown";
  if (address.startsWith("::ffff:")) return address.slice("::ffff:".length);
  if (!address.includes(":")) return address;
  const [head = "", tail = ""] = address.split("::");
  const left = head === "" ? [] : head.split(":");
  const right = tail === "" ? [] : tail.split(":");
  const zeros = address.includes("::")
    ? Array<string>(Math.max(0, 8 - left.length - right.length)).fill("0")
    : [];
  return `${[...left, ...zeros, ...right].slice(0, 4).join(":")}::/64`;
}
