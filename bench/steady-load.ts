import { setTimeout as sleep } from "node:timers/promises";

/** Latencies of successes in milliseconds, and failures. */
export interface Latencies {
  readonly ms: number[];
  lost: number;
  readonly reasons: Set<string>;
}

/** How often work begins, and for how long. */
export interface SteadyLoad {
  readonly perSecond: number;
  /** Most at a time. */
  readonly inFlight: number;
  /** Whether the work goes on; `performance.now()` of the moment is passed. */
  readonly goesOn: (now: number) => boolean;
}

/** Starts `work` at a steady rate while it goes on, and waits for all. */
export async function steadily(
  { perSecond, inFlight, goesOn }: SteadyLoad,
  work: () => Promise<unknown>,
): Promise<Latencies> {
  const figures: Latencies = { ms: [], lost: 0, reasons: new Set() };
  const running = new Set<Promise<void>>();
  for (let due = performance.now(); goesOn(due); due += 1_000 / perSecond) {
    await sleep(Math.max(0, due - performance.now()));
    if (running.size >= inFlight) await Promise.race(running);
    const begin = performance.now();
    const run = work()
      .then(() => void figures.ms.push(performance.now() - begin))
      .catch((error: unknown) => {
        figures.lost++;
        figures.reasons.add(String(error));
      })
      .finally(() => void running.delete(run));
    running.add(run);
  }
  await Promise.all(running);
  return figures;
}
