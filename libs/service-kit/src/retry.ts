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
