/** What a replica has counted since it was started; `total_ms` is the time of all requests together. */
export interface Counters {
  readonly requests: number;
  readonly errors: number;
  readonly total_ms: number;
}

/** The load between two readings. */
export interface Activity {
  readonly requestsPerSecond: number;
  readonly errorsPerSecond: number;
  /** Mean time of the requests between the readings, in milliseconds; null without requests. */
  readonly meanMs: number | null;
}

/** The activity between two readings of the same counters, `ms` milliseconds apart (above 0). */
export function activityBetween(before: Counters, now: Counters, ms: number): Activity {
  const { requests, errors, total_ms } = growth(before, now);
  return {
    requestsPerSecond: (requests * 1_000) / ms,
    errorsPerSecond: (errors * 1_000) / ms,
    meanMs: requests === 0 ? null : total_ms / requests,
  };
}

/** The activity of several together; null where nothing is known of any. */
export function activityTogether(activities: readonly (Activity | null)[]): Activity | null {
  const known = activities.filter((activity) => activity !== null);
  if (known.length === 0) return null;
  const requestsPerSecond = sum(known, (activity) => activity.requestsPerSecond);
  const msPerSecond = sum(known, (activity) => activity.requestsPerSecond * (activity.meanMs ?? 0));
  return {
    requestsPerSecond,
    errorsPerSecond: sum(known, (activity) => activity.errorsPerSecond),
    meanMs: requestsPerSecond === 0 ? null : msPerSecond / requestsPerSecond,
  };
}

/** All counters in one. */
export function countersTogether(counters: readonly Counters[]): Counters {
  return {
    requests: sum(counters, ({ requests }) => requests),
    errors: sum(counters, ({ errors }) => errors),
    total_ms: sum(counters, ({ total_ms }) => total_ms),
  };
}

/** Counters only grow: if one is lower than before, all of them restarted between the readings. */
function growth(before: Counters, now: Counters): Counters {
  const restarted =
    now.requests < before.requests || now.errors < before.errors || now.total_ms < before.total_ms;
  if (restarted) return now;
  return {
    requests: now.requests - before.requests,
    errors: now.errors - before.errors,
    total_ms: now.total_ms - before.total_ms,
  };
}

function sum<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((total, item) => total + of(item), 0);
}
