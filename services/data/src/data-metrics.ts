import { Counter, Gauge, type Registry } from "prom-client";
import type { Unstorable } from "./ingestion/message-check.ts";
import type { DataStore } from "./store/data-store.ts";

/** Why a message was not stored. */
export type DropReason = Unstorable | "device_deleted" | "refused_by_store" | "overload";

/** Counters of the data service. */
export interface DataMetrics {
  /** By QoS: `0`, or `1` for both others. */
  readonly stored: Counter<"qos">;
  /** Delivered again after they were stored. */
  readonly repeated: Counter;
  readonly dropped: Counter<"reason">;
  /** Batches that the store could not take; they are retried. */
  readonly failed: Counter;
  /** By cause: `age`, `bytes`, `purge`. */
  readonly deleted: Counter<"cause">;
}

/** Registers the metrics. Each scrape asks the store and the broker. */
export function createDataMetrics(
  registry: Registry,
  store: DataStore,
  backlog: () => Promise<number>,
): DataMetrics {
  const registers = [registry];
  new Gauge({
    name: "devmesh_data_store_bytes",
    help: "What the stored records occupy, indexes included.",
    registers,
    async collect() {
      const size = await store.size().catch(() => null);
      if (size === null) this.remove();
      else this.set(size.bytes);
    },
  });
  new Gauge({
    name: "devmesh_data_oldest_record_timestamp_seconds",
    help: "When the broker took the oldest record; absent while there is none.",
    registers,
    async collect() {
      const size = await store.size().catch(() => null);
      if (size === null || size.oldest === null) this.remove();
      else this.set(size.oldest / 1000);
    },
  });
  new Gauge({
    name: "devmesh_data_backlog_messages",
    help: "Messages that the broker has acknowledged to devices and that are not stored yet.",
    registers,
    async collect() {
      try {
        this.set(await backlog());
      } catch {
        // Absent is unknown; an old value would be wrong.
        this.remove();
      }
    },
  });
  return {
    stored: new Counter({
      name: "devmesh_data_records_stored_total",
      help: "Records stored.",
      labelNames: ["qos"],
      registers,
    }),
    repeated: new Counter({
      name: "devmesh_data_messages_repeated_total",
      help: "Messages that were delivered again and had been stored.",
      registers,
    }),
    dropped: new Counter({
      name: "devmesh_data_messages_dropped_total",
      help: "Messages that were not stored and will not be.",
      labelNames: ["reason"],
      registers,
    }),
    failed: new Counter({
      name: "devmesh_data_batches_failed_total",
      help: "Batches that the store could not take; they are tried again.",
      registers,
    }),
    deleted: new Counter({
      name: "devmesh_data_records_deleted_total",
      help: "Records deleted.",
      labelNames: ["cause"],
      registers,
    }),
  };
}
