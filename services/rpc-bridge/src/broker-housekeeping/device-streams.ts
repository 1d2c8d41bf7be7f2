import { type Clock, withTimeout } from "@devmesh/service-kit/clock";
import type { Logger } from "@devmesh/service-kit/logger";
import { retry } from "@devmesh/service-kit/retry";

interface DeviceStreamsOptions {
  /** Idempotent. */
  readonly provisionStreams: () => Promise<void>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Ends all attempts. */
  readonly signal: AbortSignal;
}

/** Wait before another attempt, in milliseconds. */
const retryAfterMs = 500;

/** Not ready before the first `provision`. */
export function createDeviceStreams(options: DeviceStreamsOptions) {
  const { provisionStreams, clock, log, signal } = options;
  let round = 0;
  let ready = false;
  let becomesReady = Promise.withResolvers<void>();

  async function attempt(thisRound: number): Promise<void> {
    const provisionInRound = async () => {
      if (thisRound === round) await provisionStreams();
    };
    await retry(provisionInRound, {
      firstMs: retryAfterMs,
      longestMs: retryAfterMs,
      isRetried(error) {
        log.warn({ err: error }, "the broker's streams could not be set up yet");
        return thisRound === round;
      },
      clock,
      signal,
    });
    if (thisRound !== round) return;
    ready = true;
    becomesReady.resolve();
    becomesReady = Promise.withResolvers<void>();
  }

  return {
    /** Whether they are set up. */
    get ready(): boolean {
      return ready;
    },
    /** Sets them up; to be repeated after each login, since the broker may be a new one. Returns at once. */
    provision(): void {
      ready = false;
      round++;
      // Rejects only when the bridge stops or another round has begun.
      void attempt(round).catch(() => undefined);
    },
    /** True as soon as they are ready; false after `waitMs`. */
    async untilReady(waitMs: number): Promise<boolean> {
      if (!ready) await withTimeout(waitMs, becomesReady.promise, clock);
      return ready;
    },
  };
}
