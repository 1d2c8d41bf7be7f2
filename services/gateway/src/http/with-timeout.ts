import type { Clock } from "@devmesh/service-kit/clock";

/** Whether a promise resolves within `timeoutMs` milliseconds; rejects when it rejects before. */
export async function withTimeout(
  timeoutMs: number,
  promise: Promise<unknown>,
  clock: Clock,
): Promise<boolean> {
  const late = Promise.withResolvers<boolean>();
  const cancel = clock.schedule(timeoutMs, () => late.resolve(false));
  try {
    return await Promise.race([promise.then(() => true), late.promise]);
  } finally {
    cancel();
  }
}
