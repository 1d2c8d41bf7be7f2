import { type Clock, systemClock } from "./clock.ts";

/** When {@link retry} tries again. Waits are in milliseconds, doubled from the first and jittered by a quarter. */
export interface RetryOptions {
  readonly firstMs: number;
  readonly longestMs: number;
  /** Decides after each failure, of which `failures` counts this one; false ends with its error. */
  readonly isRetried: (error: unknown, failures: number) => boolean;
  readonly clock?: Clock;
  /** Ends the waiting; then the last error is thrown. */
  readonly signal?: AbortSignal | undefined;
}

/** Repeats `work` until it resolves. */
export async function retry<T>(work: () => Promise<T>, options: RetryOptions): Promise<T> {
  const { firstMs, longestMs, isRetried, clock = systemClock, signal } = options;
  let waitMs = firstMs;
  for (let failures = 1; ; failures++) {
    signal?.throwIfAborted();
    try {
      return await work();
    } catch (error) {
      if (signal?.aborted || !isRetried(error, failures)) throw error;
      await clock.sleep(waitMs * (0.75 + Math.random() / 2), signal).catch(() => {
        throw error;
      });
      waitMs = Math.min(2 * waitMs, longestMs);
    }
  }
}

/** When {@link repeat} works again, and until when. */
export interface RepeatOptions {
  /** From the end of one round to the begin of the next, in milliseconds. */
  readonly everyMs: number;
  /** Takes what a round threw, unless `signal` has aborted. */
  readonly onFailure: (error: unknown) => void;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** Runs `work` at once and then again and again. Resolves when `signal` aborts, after the round that runs then. */
export async function repeat(work: () => Promise<void>, options: RepeatOptions): Promise<void> {
  const { everyMs, onFailure, clock, signal } = options;
  while (!signal.aborted) {
    await work().catch((error: unknown) => {
      if (!signal.aborted) onFailure(error);
    });
    await clock.sleep(everyMs, signal).catch(() => undefined);
  }
}
