import { type Clock, systemClock } from "../clock.ts";
import { ServiceError } from "../errors.ts";

/** Header with the milliseconds a callee has left: relative, since the clocks of two machines differ. */
export const timeoutHeader = "Mesh-Timeout-Ms";

/** How much longer a caller waits than it gives the callee, so that the callee's own error arrives first. */
export const graceMs = 50;

/** A point in time on the monotonic clock by which a call must have ended; nested calls inherit what remains. */
export class Deadline {
  readonly #endsAtMs: number;
  readonly #clock: Clock;

  private constructor(endsAtMs: number, clock: Clock) {
    this.#endsAtMs = endsAtMs;
    this.#clock = clock;
  }

  static after(ms: number, clock: Clock = systemClock): Deadline {
    return new Deadline(clock.monotonicMs() + ms, clock);
  }

  remainingMs(): number {
    return Math.max(0, this.#endsAtMs - this.#clock.monotonicMs());
  }

  get clock(): Clock {
    return this.#clock;
  }
}

/** Runs `work` until `signal` aborts; a later result is ignored. */
export function untilAborted<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    // The handler may throw before its first await: the wrapper turns that into a rejection, too.
    (async () => work())().then(resolve, reject);
  });
}

/**
 * Milliseconds of a received timeout header, at most `capMs`, which is also the default. Throws `invalid_request`
 * unless it is digits.
 */
export function parseTimeout(header: string | undefined, capMs: number): number {
  if (header === undefined || header === "") return capMs;
  if (!/^\d{1,9}$/.test(header)) {
    throw ServiceError.of("invalid_request", {
      details: [{ pointer: "", detail: `header ${timeoutHeader} must be 1 to 9 digits` }],
    });
  }
  return Math.min(Number(header), capMs);
}
