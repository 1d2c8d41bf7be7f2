import type { Clock } from "@devmesh/service-kit/clock";

/** Whether what is awaited comes within `boundMs` milliseconds; rejects when it does so by then. */
export async function comesWithin(
  boundMs: number,
  awaited: Promise<unknown>,
  clock: Clock,
): Promise<boolean> {
  const late = Promise.withResolvers<boolean>();
  const cancel = clock.schedule(boundMs, () => late.resolve(false));
  try {
    return await Promise.race([awaited.then(() => true), late.promise]);
  } finally {
    cancel();
  }
}
