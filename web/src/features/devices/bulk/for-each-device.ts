import { ApiProblem } from "../../../api/api-problem.ts";
import { pause } from "../../../api/pause.ts";

/** The outcome for one device. */
export type DeviceOutcome =
  | { readonly id: string; readonly kind: "done"; readonly result: unknown }
  | { readonly id: string; readonly kind: "failed"; readonly error: unknown };

/** Options of {@link forEachDevice}. */
interface ForEachOptions {
  readonly ids: readonly string[];
  /** Maximum of devices at a time. */
  readonly concurrency: number;
  readonly act: (id: string, signal: AbortSignal) => Promise<unknown>;
  /** Called once for each started device, in the order in which they finish. */
  readonly onOutcome: (outcome: DeviceOutcome) => void;
  /** Ends the work: no further device starts, and running ones are aborted. */
  readonly signal: AbortSignal;
}

/** Runs `act` for each device, several at a time; failures do not stop the others. Resolves after all have ended. */
export async function forEachDevice({
  ids,
  concurrency,
  act,
  onOutcome,
  signal,
}: ForEachOptions): Promise<void> {
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

/** Maximum of attempts while the gateway limits the rate (429). */
const tries = 5;

/** Delay before a retry if the gateway gives none, in milliseconds. */
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
