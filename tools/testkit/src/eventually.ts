import { setTimeout as sleep } from "node:timers/promises";

/** Default for the longest wait of a test for one thing, in milliseconds: machines that run tests are busy. */
export const defaultPatienceMs = 60_000;

/** Bounds of {@link eventually}, in milliseconds. */
export interface Patience {
  readonly withinMs?: number;
  readonly everyMs?: number;
}

/**
 * Repeats a check until it neither throws nor returns `false`, `null` or `undefined`, and returns its result. Throws
 * after the bound, with the last failure as `cause`.
 */
export async function eventually<T>(
  check: () => T | Promise<T>,
  { withinMs = defaultPatienceMs, everyMs = 25 }: Patience = {},
): Promise<Exclude<T, false | null | undefined>> {
  const end = performance.now() + withinMs;
  for (;;) {
    let failure: unknown;
    try {
      const answer = await check();
      if (answer !== false && answer !== null && answer !== undefined) {
        return answer as Exclude<T, false | null | undefined>;
      }
      failure = `the check answered ${String(answer)}`;
    } catch (error) {
      failure = error;
    }
    if (performance.now() >= end) {
      const reason = failure instanceof Error ? failure.message : String(failure);
      throw new Error(`not so within ${withinMs} ms: ${reason}`, { cause: failure });
    }
    await sleep(everyMs);
  }
}
