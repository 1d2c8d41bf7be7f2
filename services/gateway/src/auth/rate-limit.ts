import type { Clock } from "@devmesh/service-kit/clock";
import { TokenBuckets } from "@devmesh/service-kit/token-buckets";
import { RequestRefused } from "../http/gateway-errors.ts";

export interface RateLimitOptions {
  /** Name of the policy in the `RateLimit` headers. */
  readonly name: string;
  /** Tokens a second. A bucket holds twice as many (api.md, Conventions). */
  readonly perSecond: number;
  /** Most buckets; beyond it the least recently used one is evicted, as if it were full. */
  readonly maxBuckets: number;
  readonly clock: Clock;
}

/** Headers of 429 `rate_limited`. */
type RefusalHeaders = Readonly<Record<"Retry-After" | "RateLimit-Policy" | "RateLimit", string>>;

/** Token buckets by key or address, in the memory of this replica (api.md, Conventions). */
export class RateLimit {
  /** Value of the `RateLimit-Policy` header (draft-ietf-httpapi-ratelimit-headers-10). */
  readonly policy: string;
  readonly #name: string;
  readonly #perSecond: number;
  readonly #size: number;
  readonly #clock: Clock;
  readonly #buckets: TokenBuckets;

  constructor({ name, perSecond, maxBuckets, clock }: RateLimitOptions) {
    this.#name = name;
    this.#perSecond = perSecond;
    this.#size = Math.max(1, perSecond * 2);
    this.#clock = clock;
    this.#buckets = new TokenBuckets({ size: this.#size, refill: perSecond, maxBuckets, allowDebt: true });
    this.policy = `"${name}";q=${Math.floor(this.#size)};w=${Math.ceil(this.#size / perSecond)}`;
  }

  /** Takes one token and writes the `RateLimit` headers; throws `rate_limited` when there is none. */
  take(key: string, headers: Record<string, string>): void {
    const isGranted = this.#buckets.tryTake(key, this.#clock.monotonicMs());
    const tokens = this.#tokens(key);
    headers["RateLimit-Policy"] = this.policy;
    headers.RateLimit = this.#state(tokens);
    if (!isGranted) throw this.#refusal(tokens);
  }

  /** Throws `rate_limited` when the bucket is empty, and takes nothing. */
  assertNotEmpty(key: string): void {
    const headers = this.refusalHeaders(key);
    if (headers !== null) throw new RequestRefused("rate_limited", { headers });
  }

  /** Takes one token, into debt where there is none, so that a burst cannot outrun its own answers. */
  charge(key: string): void {
    this.#buckets.take(key, this.#clock.monotonicMs());
  }

  /**
   * Takes further tokens for a request that `take` has granted; one request may leave a debt of any size. Throws
   * `rate_limited`, and takes nothing, while the bucket is in debt.
   */
  surcharge(key: string, tokens: number, headers: Record<string, string>): void {
    const isGranted = this.#tokens(key) >= 0;
    if (isGranted) this.#buckets.take(key, this.#clock.monotonicMs(), tokens);
    const left = this.#tokens(key);
    headers.RateLimit = this.#state(left);
    if (!isGranted) throw this.#refusal(left);
  }

  #tokens(key: string): number {
    return this.#buckets.tokens(key, this.#clock.monotonicMs());
  }

  #state(tokens: number): string {
    const secondsToFull = Math.ceil((this.#size - tokens) / this.#perSecond);
    return `"${this.#name}";r=${Math.max(0, Math.floor(tokens))};t=${secondsToFull}`;
  }

  /** Headers of the refusal while the bucket is empty; null while there is a token. Takes nothing. */
  refusalHeaders(key: string): RefusalHeaders | null {
    const tokens = this.#tokens(key);
    return tokens < 1 ? this.#headersOf(tokens) : null;
  }

  #headersOf(tokens: number): RefusalHeaders {
    const seconds = Math.max(1, Math.ceil((1 - tokens) / this.#perSecond));
    return {
      "Retry-After": String(seconds),
      "RateLimit-Policy": this.policy,
      RateLimit: this.#state(tokens),
    };
  }

  #refusal(tokens: number): RequestRefused {
    return new RequestRefused("rate_limited", { headers: this.#headersOf(tokens) });
  }
}
