import type { Clock } from "@devmesh/service-kit/clock";
import type { Logger } from "@devmesh/service-kit/logger";

/** The streams and durable consumers of the broker that store what devices publish. */
export interface DeviceStreams {
  /** Whether they are set up. */
  readonly ready: boolean;
  /** Sets them up; to be repeated after each login, since the broker may be a new one. Returns at once. */
  provision(): void;
  /** True as soon as they are ready; false after `waitMs`. */
  untilReady(waitMs: number): Promise<boolean>;
}

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
export function createDeviceStreams(options: DeviceStreamsOptions): DeviceStreams {
  const { provisionStreams, clock, log, signal } = options;
  let round = 0;
  let ready = false;
  const waiting = new Set<() => void>();

  async function attempt(thisRound: number): Promise<void> {
    while (!signal.aborted && thisRound === round) {
      try {
        await provisionStreams();
        if (thisRound !== round) return;
        ready = true;
        for (const resume of waiting) resume();
        return;
      } catch (error) {
        log.warn({ err: error }, "the broker's streams could not be set up yet");
        await clock.sleep(retryAfterMs, signal).catch(() => undefined);
      }
    }
  }

  return {
    get ready() {
      return ready;
    },
    provision() {
      ready = false;
      round++;
      void attempt(round);
    },
    async untilReady(waitMs) {
      if (ready) return true;
      await new Promise<void>((resolve) => {
        const resume = () => {
          cancel();
          waiting.delete(resume);
          resolve();
        };
        const cancel = clock.schedule(waitMs, resume);
        waiting.add(resume);
      });
      return ready;
    },
  };
}
