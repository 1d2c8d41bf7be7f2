import { setNewest } from "@devmesh/service-kit/set-newest";
import { TokenBucket } from "@devmesh/service-kit/token-buckets";

/** Devices whose rate is kept; the one that logged in longest ago is forgotten, as if it had been quiet. */
const maxDevices = 100_000;

/** Seconds of the rate that a device may send at once. */
const burstSeconds = 10;

/** Limits of a device each second over all its connections in a front; bursts of ten times as much. */
export interface DeviceRateLimits {
  readonly messages: number;
  readonly bytes: number;
}

/** The rate of one device. */
export class DeviceRate {
  readonly #limits: DeviceRateLimits;
  readonly #messages: TokenBucket;
  readonly #bytes: TokenBucket;

  constructor(limits: DeviceRateLimits) {
    this.#limits = limits;
    const bucket = (refill: number) =>
      new TokenBucket({ size: refill * burstSeconds, refill, allowDebt: true });
    this.#messages = bucket(limits.messages);
    this.#bytes = bucket(limits.bytes);
  }

  /** Counts a message of so many bytes, also beyond the rate. */
  count(bytes: number, nowMs: number): void {
    this.#messages.take(nowMs);
    this.#bytes.take(nowMs, bytes);
  }

  /** How long the sockets of the device should not be read, in milliseconds; 0: go on. */
  holdMs(nowMs: number): number {
    const messages = this.#messages.tokens(nowMs);
    const bytes = this.#bytes.tokens(nowMs);
    if (messages >= 0 && bytes >= 0) return 0;
    const owedSeconds = Math.max(-messages / this.#limits.messages, -bytes / this.#limits.bytes);
    return Math.ceil(owedSeconds * 1_000);
  }
}

/**
 * The rates of devices, also while they are not connected: a new login brings no new burst. What is beyond a rate is
 * not read from sockets, so that nothing acknowledged is lost.
 */
export class DeviceRates {
  readonly #limits: DeviceRateLimits;
  readonly #rates = new Map<string, DeviceRate>();

  constructor(limits: DeviceRateLimits) {
    this.#limits = limits;
  }

  /** The rate of a device that logs in. */
  of(deviceId: string): DeviceRate {
    const rate = this.#rates.get(deviceId) ?? new DeviceRate(this.#limits);
    setNewest(this.#rates, deviceId, rate, maxDevices);
    return rate;
  }
}
