import type { Clock } from "@devmesh/service-kit/clock";
import type { Logger } from "@devmesh/service-kit/logger";

/** Whether the broker keeps what devices publish: its streams have their limits, their durable consumers exist. */
export interface Ingestion {
  readonly ready: boolean;
  /**
   * Sets the streams up, again after each login to the broker: it may be another one, or an emptied one. Returns at
   * once.
   */
  provision(): void;
  /** True as soon as it is ready; false when it is not after `waitMs`. */
  untilReady(waitMs: number): Promise<boolean>;
}

/** What {@link createIngestion} needs. */
export interface IngestionOptions {
  /** Sets the streams up; doing it twice changes nothing. */
  readonly provisionStreams: () => Promise<void>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Ends all attempts. */
  readonly signal: AbortSignal;
}

/** Wait before another attempt, in milliseconds. */
const retryAfterMs = 500;

/** Not ready before the first `provision`. */
export function createIngestion({ provisionStreams, clock, log, signal }: IngestionOptions): Ingestion {
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
