import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock } from "@devmesh/service-kit/clock";
import type { Logger } from "@devmesh/service-kit/logger";
import { repeat } from "@devmesh/service-kit/retry";
import type { DataMetrics } from "../data-metrics.ts";
import type { DataStore } from "../store/data-store.ts";
import type { Purges } from "./purge.ts";

/** Bounds of the store. */
export interface RetentionOptions {
  readonly store: DataStore;
  readonly purges: Purges;
  readonly metrics: DataMetrics;
  readonly clock: Clock;
  readonly log: Logger;
  /** Days that a record is kept. */
  readonly days: number;
  /** The device that stores most loses its oldest records first. */
  readonly maxBytes: number;
  /** Days that numbers are kept by the hour. */
  readonly seriesDays: number;
  /** The device that has most of them loses its oldest ones first. */
  readonly maxSeriesBytes: number;
}

const recordsPerStep = 500;
const sweepEveryMs = 30_000;
const bucketsEveryMs = 600_000;
const dayMs = 86_400_000;

/** Retention by age and by size (api.md, Stored data), in steps between which ingestion goes on. */
export function createRetention(options: RetentionOptions) {
  const { store, purges, metrics, clock, log, days, maxBytes, seriesDays, maxSeriesBytes } = options;

  let bucketsDueMs = clock.monotonicMs();

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

  /** Adds the numbers of all records to their buckets; returns whether another process does. */
  async function rollUp(signal: AbortSignal): Promise<boolean> {
    for (;;) {
      signal.throwIfAborted();
      const outcome = await store.rollUp();
      if (outcome !== "more") return outcome === "elsewhere";
      await nextTurn();
    }
  }

  /** Deletes all that is beyond the bounds; no record before its numbers are in their buckets. */
  async function sweep(signal: AbortSignal): Promise<void> {
    const now = clock.now().getTime();
    const expiry = now - days * dayMs;
    if (!(await rollUp(signal))) {
      await deleteInSteps("age", () => store.deleteExpired(expiry, recordsPerStep), signal);
      await deleteInSteps("bytes", () => store.deleteHeaviest(recordsPerStep, maxBytes), signal);
      if (clock.monotonicMs() >= bucketsDueMs) {
        bucketsDueMs = clock.monotonicMs() + bucketsEveryMs;
        await store.expireBuckets({ minutes: expiry, hours: now - seriesDays * dayMs }, signal);
        await store.shrinkSeries(maxSeriesBytes, signal);
      }
    }
    // Older messages would be deleted anyway.
    await store.forgetAdmissions(expiry);
    await purges.resume();
  }

  return {
    sweep,
    /** Sweeps at once and then every 30 s until `signal` aborts; a failure is logged. */
    run: (signal: AbortSignal): Promise<void> =>
      repeat(() => sweep(signal), {
        everyMs: sweepEveryMs,
        onFailure: (error) => log.error({ err: error }, "the store could not be swept"),
        clock,
        signal,
      }),
  };
}
