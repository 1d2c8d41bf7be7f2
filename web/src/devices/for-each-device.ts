import { ApiProblem } from "../api/api-problem.ts";
import { pause } from "../api/pause.ts";

/** What came of one device. */
export type Outcome =
  | { readonly id: string; readonly kind: "done"; readonly result: unknown }
  | { readonly id: string; readonly kind: "failed"; readonly error: unknown };

/** How the work on many devices is done. */
interface Work {
  readonly ids: readonly string[];
  /** Most that are under way at a time. */
  readonly concurrency: number;
  readonly act: (id: string, signal: AbortSignal) => Promise<unknown>;
  /** Told once for each device that was taken up, in the order in which they finish. */
  readonly onOutcome: (outcome: Outcome) => void;
  /** Ends the work: no further device is taken up, and what is under way is given up. */
  readonly signal: AbortSignal;
}

/** Does something for each device, some at a time; one that fails holds up no other. Resolves when all is done or given up. */
export async function forEachDevice({ ids, concurrency, act, onOutcome, signal }: Work): Promise<void> {
  const waiting = ids.values();
  const worker = async () => {
    for (const id of waiting) {
      if (signal.aborted) return;
      try {
        onOutcome({ id, kind: "done", result: await patiently(() => act(id, signal), signal) });
      } catch (error) {
        if (signal.aborted) return;
        onOutcome({ id, kind: "failed", error });
      }
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
}

/** Most times that something is tried for which the gateway had no room (429). */
const tries = 5;

/** The wait before another try where the gateway does not say, in milliseconds. */
const usualWaitMs = 1_000;

async function patiently<T>(act: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (let tried = 1; ; tried += 1) {
    try {
      return await act();
    } catch (error) {
      if (tried === tries || !(error instanceof ApiProblem) || error.status !== 429) throw error;
      await pause(error.retryAfterMs ?? usualWaitMs, signal);
      signal.throwIfAborted();
    }
  }
}
