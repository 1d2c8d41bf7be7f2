import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock } from "@devmesh/service-kit/clock";
import type { Logger } from "@devmesh/service-kit/logger";
import type { DataMetrics } from "../data-metrics.ts";
import type { DataStore } from "../store/data-store.ts";
import type { Purges } from "./purge.ts";

/** How long records are kept, and how much of them. */
export interface RetentionOptions {
  readonly store: DataStore;
  readonly purges: Purges;
  readonly metrics: DataMetrics;
  readonly clock: Clock;
  readonly log: Logger;
  /** Days after which a record goes. */
  readonly days: number;
  /** What the store may occupy, in bytes; the device that stores most loses its oldest records first. */
  readonly maxBytes: number;
}

/** Keeps the store within its bounds. */
export interface Retention {
  /** Deletes all that is beyond the bounds now. */
  sweep(signal: AbortSignal): Promise<void>;
  /**
   * Sweeps at once and then every 30 s until `signal` aborts. What fails is logged and tried again.
   */
  run(signal: AbortSignal): Promise<void>;
}

const recordsPerStep = 500;
const sweepEveryMs = 30_000;
const dayMs = 86_400_000;

/** Retention by age and by size (api.md, Stored data). Between two steps ingestion has its turn. */
export function createRetention(options: RetentionOptions): Retention {
  const { store, purges, metrics, clock, log, days, maxBytes } = options;

  async function deleteInSteps(
    cause: "age" | "bytes",
    step: () => Promise<number>,
    signal: AbortSignal,
  ): Promise<void> {
    for (;;) {
      signal.throwIfAborted();
      const deleted = await step();
      if (deleted === 0) return;
      metrics.deleted.inc({ cause }, deleted);
      await nextTurn();
    }
  }

  async function sweep(signal: AbortSignal): Promise<void> {
    const expiry = clock.now().getTime() - days * dayMs;
    await deleteInSteps("age", () => store.deleteExpired(expiry, recordsPerStep), signal);
    await deleteInSteps("bytes", () => store.deleteHeaviest(recordsPerStep, maxBytes), signal);
    // What is older than any record that is kept would be deleted anyway.
    await store.forgetAdmissions(expiry);
    await purges.resume();
  }

  return {
    sweep,
    async run(signal) {
      while (!signal.aborted) {
        try {
          await sweep(signal);
        } catch (error) {
          if (!signal.aborted) log.error({ err: error }, "the store could not be swept");
        }
        // Ends early, and silently, when the service stops.
        await clock.sleep(sweepEveryMs, signal).catch(() => undefined);
      }
    },
  };
}
