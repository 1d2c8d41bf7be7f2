const FIRST_MS = 1_000;
const LONGEST_MS = 30_000;
const HEALTHY_AFTER_MS = 60_000;

/** Waits between restarts of one process: 1 s, doubling to 30 s, from the start again once it was up for a minute. */
export interface BackOff {
  /** Tells that the process is up, at the given time in milliseconds of any monotonic clock. */
  up(atMs: number): void;
  /** The wait before the next start, in milliseconds, of a process that ended, or failed to start, at the given time. */
  next(atMs: number): number;
}

/** Makes the back-off of one process. */
export function backOff(): BackOff {
  let wait = FIRST_MS;
  let upSince: number | null = null;
  return {
    up(atMs) {
      upSince = atMs;
    },
    next(atMs) {
      if (upSince !== null && atMs - upSince >= HEALTHY_AFTER_MS) wait = FIRST_MS;
      upSince = null;
      const now = wait;
      wait = Math.min(wait * 2, LONGEST_MS);
      return now;
    },
  };
}
