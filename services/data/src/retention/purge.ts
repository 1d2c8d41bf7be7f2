import { setImmediate as nextTurn } from "node:timers/promises";
import type { Logger } from "@devmesh/service-kit/logger";
import { StoreUnavailable } from "@devmesh/store/store-unavailable";
import type { DataMetrics } from "../data-metrics.ts";
import type { DataStore } from "../store/data-store.ts";

/** Deletes all records of a device, in steps short enough for ingestion to go on between them. */
export type Purges = ReturnType<typeof createPurges>;

/** What purges need. */
export interface PurgesOptions {
  readonly store: DataStore;
  readonly metrics: DataMetrics;
  readonly log: Logger;
  /** Interrupts purges when the service stops. */
  readonly signal: AbortSignal;
}

const recordsPerStep = 500;
const seriesPerStep = 5;

/** A purge goes on after the call that started it has ended. */
export function createPurges({ store, metrics, log, signal }: PurgesOptions) {
  const underWay = new Map<string, Promise<void>>();

  async function deleteAll(deviceId: string): Promise<void> {
    for (;;) {
      if (signal.aborted)
        throw new StoreUnavailable("the service is stopping; the purge goes on when it starts");
      const deleted = await store.deleteRecordsOf(deviceId, recordsPerStep);
      if (deleted === 0) break;
      metrics.deleted.inc({ cause: "purge" }, deleted);
      await nextTurn();
    }
    // After the records, so that no number of theirs comes back.
    while ((await store.deleteSeriesOf(deviceId, seriesPerStep)) > 0) await nextTurn();
    await store.finishPurge(deviceId);
  }

  function proceed(deviceId: string): Promise<void> {
    const running = underWay.get(deviceId);
    if (running !== undefined) return running;
    const purge = deleteAll(deviceId).finally(() => underWay.delete(deviceId));
    underWay.set(deviceId, purge);
    purge.catch((error: unknown) => {
      if (!signal.aborted)
        log.error({ err: error, device_id: deviceId }, "a purge was interrupted; it will be resumed");
    });
    return purge;
  }

  return {
    /**
     * Refuses the device's messages at once and resolves when none of its records is left. A second call joins the
     * first.
     * @throws StoreUnavailable when it was interrupted; `resume` continues it
     */
    async purge(deviceId: string): Promise<void> {
      await store.refuseDevice(deviceId);
      await proceed(deviceId);
    },
    /** Continues purges that a crash or a failure interrupted. */
    async resume(): Promise<void> {
      for (const deviceId of await store.unfinishedPurges()) await proceed(deviceId);
    },
  };
}
