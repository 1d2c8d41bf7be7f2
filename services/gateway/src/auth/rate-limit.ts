import type { Clock } from "@devmesh/service-kit/clock";
import { TokenBuckets } from "@devmesh/service-kit/token-buckets";
import { RequestRefused } from "../http/gateway-errors.ts";

/**
 * Charges the caller's rate with tokens beyond the one that each request costs, before the work that they pay for.
 * Throws `rate_limited` while the key is in debt for an earlier request.
 */
export type Charge = (tokens: number) => void;

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

  /** Takes one token and writes the headers that say what is left; throws `rate_limited` when there is none. */
  take(key: string, headers: Record<string, string>): void {
    const isGranted = this.#buckets.tryTake(key, this.#clock.monotonicMs());
    const tokens = this.#tokens(key);
    headers["RateLimit-Policy"] = this.policy;
    headers.RateLimit = this.#state(tokens);
    if (!isGranted) throw this.#refusal(tokens);
  }

  /** Throws `rate_limited` when the bucket is empty, and takes nothing. */
  assertNotEmpty(key: string): void {
    const tokens = this.#tokens(key);
    if (tokens < 1) throw this.#refusal(tokens);
  }

  /** Takes one token, into debt where there is none, so that a burst cannot outrun its own answers. */
  charge(key: string): void {
    this.#buckets.take(key, this.#clock.monotonicMs());
  }

  /**
   * Takes further tokens for a request that `take` has granted and updates the headers. One request may leave a debt
   * of any size; throws `rate_limited`, and takes nothing, while an earlier debt is not paid.
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

  #refusal(tokens: number): RequestRefused {
    const seconds = Math.max(1, Math.ceil((1 - tokens) / this.#perSecond));
    return new RequestRefused("rate_limited", {
      headers: {
        "Retry-After": String(seconds),
        "RateLimit-Policy": this.policy,
        RateLimit: this.#state(tokens),
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
