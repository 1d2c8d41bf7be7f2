import type { Clock } from "@devmesh/service-kit/clock";
import { isReason, ServiceError } from "@devmesh/service-kit/errors";

/** Waits between attempts, in milliseconds: doubled from the first to the last, jittered by half. */
const backoff = { firstMs: 100, lastMs: 5_000 } as const;

/** How often a failure that lies in the request itself, rather than in an absent service, is tried. */
const maxFailures = 5;

/**
 * Repeats `work` for as long as the service behind it cannot be reached, and a few times when it fails or is too slow,
 * so that one request which always fails cannot hold up what comes after it. Throws what the last attempt threw:
 * at once if trying again cannot help, or when `signal` aborts.
 */
export async function withRetries<T>(work: () => Promise<T>, clock: Clock, signal: AbortSignal): Promise<T> {
  let failures = 0;
  for (let waitMs: number = backoff.firstMs; ; waitMs = Math.min(waitMs * 2, backoff.lastMs)) {
    try {
      return await work();
    } catch (error) {
      if (signal.aborted || !isTransient(error)) throw error;
      if (!isReason(error, "unavailable") && ++failures >= maxFailures) throw error;
      await clock.sleep(waitMs * (0.5 + Math.random() / 2), signal).catch(() => {
        throw error;
      });
    }
  }
}

function isTransient(error: unknown): boolean {
  return isReason(ServiceError.from(error), "unavailable", "deadline_exceeded", "internal");
}
