import { setTimeout as sleepFor } from "node:timers/promises";

/** Where time comes from. Services take it as a dependency, so that tests move it by hand. */
export interface Clock {
  /** Wall-clock time, for what is stored or shown. It may jump. */
  now(): Date;
  /** Monotonic milliseconds, for measuring and for deadlines. */
  monotonicMs(): number;
  /** Runs `task` once after `ms`; the returned function cancels it. A pending task keeps no process alive. */
  schedule(ms: number, task: () => void): () => void;
  /** Resolves after `ms`; rejects with the signal's reason as soon as it aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** The machine's own time. */
export const systemClock: Clock = {
  now: () => new Date(),
  monotonicMs: () => performance.now(),
  schedule(ms, task) {
    const timer = setTimeout(task, ms);
    timer.unref();
    return () => clearTimeout(timer);
  },
  async sleep(ms, signal) {
    try {
      await sleepFor(ms, undefined, signal === undefined ? {} : { signal });
    } catch (error) {
      throw signal?.reason ?? error;
    }
  },
};

/** Whether a promise resolves within `timeoutMs` milliseconds; rejects when it rejects before. */
export async function withTimeout(
  timeoutMs: number,
  promise: Promise<unknown>,
  clock: Clock = systemClock,
): Promise<boolean> {
  const late = Promise.withResolvers<boolean>();
  const cancel = clock.schedule(timeoutMs, () => late.resolve(false));
  try {
    return await Promise.race([promise.then(() => true), late.promise]);
  } finally {
    cancel();
  }
}
