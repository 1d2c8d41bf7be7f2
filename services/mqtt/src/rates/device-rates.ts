import { TokenBuckets } from "@devmesh/service-kit/token-buckets";

/** Devices whose rate is kept; the least recently used ones are forgotten, as if they had been quiet. */
const maxDevices = 100_000;

/** Seconds of the rate that a device may send at once. */
const burstSeconds = 10;

/** What a device may send each second over all its connections in a front; ten times as much at once. */
export interface DeviceRateLimits {
  readonly messages: number;
  readonly bytes: number;
}

/** The rates of devices. What is beyond them is not read from sockets, so that nothing acknowledged is lost. */
export class DeviceRates {
  readonly #limits: DeviceRateLimits;
  readonly #messages: TokenBuckets;
  readonly #bytes: TokenBuckets;

  constructor(limits: DeviceRateLimits) {
    this.#limits = limits;
    const buckets = (refill: number) =>
      new TokenBuckets({ size: refill * burstSeconds, refill, maxBuckets: maxDevices, allowDebt: true });
    this.#messages = buckets(limits.messages);
    this.#bytes = buckets(limits.bytes);
  }

  /** Counts a message of so many bytes, also beyond the rate. */
  count(deviceId: string, bytes: number, nowMs: number): void {
    this.#messages.take(deviceId, nowMs);
    this.#bytes.take(deviceId, nowMs, bytes);
  }

  /** How long the sockets of the device should not be read, in milliseconds; 0: go on. */
  holdMs(deviceId: string, nowMs: number): number {
    const { messages, bytes } = this.#limits;
    const owedMs = Math.max(
      -this.#messages.tokens(deviceId, nowMs) / messages,
      -this.#bytes.tokens(deviceId, nowMs) / bytes,
    );
    return Math.max(0, Math.ceil(owedMs * 1_000));
  }
}
