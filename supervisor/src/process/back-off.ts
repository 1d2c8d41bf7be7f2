/** How long to wait between restarts of one process; all of it in milliseconds. */
export interface BackOffLimits {
  /** The wait of a process that was up for `healthyAfterMs` before it ended. */
  readonly afterHealthMs: number;
  /** The next wait; from there on it doubles. */
  readonly firstMs: number;
  readonly longestMs: number;
  readonly healthyAfterMs: number;
}

/** 1 s, doubling to 30 s; reset once the process was up for a minute. */
export const serviceBackOff: BackOffLimits = {
  afterHealthMs: 1_000,
  firstMs: 2_000,
  longestMs: 30_000,
  healthyAfterMs: 60_000,
};

/** At once when nats-server was up for ten seconds, else 250 ms, doubling to 2 s: without it nothing works. */
export const brokerBackOff: BackOffLimits = {
  afterHealthMs: 0,
  firstMs: 250,
  longestMs: 2_000,
  healthyAfterMs: 10_000,
};

/** Waits between restarts of one process, which grow until it was up for long enough; begins as after health. */
export function backOff({ afterHealthMs, firstMs, longestMs, healthyAfterMs }: BackOffLimits) {
  let wait = afterHealthMs;
  let upSince: number | null = null;
  return {
    /** The process is up, at this time in milliseconds of any monotonic clock. */
    up(atMs: number): void {
      upSince = atMs;
    },
    /** The wait before the next start, in milliseconds, after an end or a failed start at this time. */
    next(atMs: number): number {
      if (upSince !== null && atMs - upSince >= healthyAfterMs) wait = afterHealthMs;
      upSince = null;
      const now = wait;
      wait = now < firstMs ? firstMs : Math.min(now * 2, longestMs);
      return now;
    },
  };
}
