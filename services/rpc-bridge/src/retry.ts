import type { Clock } from "@devmesh/service-kit/clock";
import { isReason, ServiceError } from "@devmesh/service-kit/errors";
import { retry } from "@devmesh/service-kit/retry";

/** How often a failure that lies in the request itself, rather than in an absent service, is tried. */
const maxFailures = 5;

/**
 * Repeats `work` while the called service cannot be reached, and a few times when it fails or is too slow,
 * so that one request which always fails cannot hold up what comes after it. Throws what the last attempt threw:
 * at once if trying again cannot help, or when `signal` aborts.
 */
export function withRetries<T>(work: () => Promise<T>, clock: Clock, signal: AbortSignal): Promise<T> {
  let failures = 0;
  return retry(work, {
    firstMs: 100,
    longestMs: 5_000,
    isRetried: (error) => isReason(error, "unavailable") || (isTransient(error) && ++failures < maxFailures),
    clock,
    signal,
  });
}

function isTransient(error: unknown): boolean {
  return isReason(ServiceError.from(error), "unavailable", "deadline_exceeded", "internal");
}
