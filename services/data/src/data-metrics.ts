import { metricsOn } from "@devmesh/service-kit/metrics";
import type { Registry } from "prom-client";
import type { DataStore } from "./store/data-store.ts";

/** Counters of the data service. */
export type DataMetrics = ReturnType<typeof createDataMetrics>;

/** Registers the metrics. Each scrape asks the store and the broker. */
export function createDataMetrics(registry: Registry, store: DataStore, backlog: () => Promise<number>) {
  const { counter, measuredGauge } = metricsOn(registry);
  measuredGauge(
    "devmesh_data_store_bytes",
    "Size of the stored records, indexes included.",
    async () => (await store.size()).bytes,
  );
  measuredGauge(
    "devmesh_data_oldest_record_timestamp_seconds",
    "When the broker received the oldest record; absent without records.",
    async () => {
      const { oldest } = await store.size();
      return oldest === null ? null : oldest / 1000;
    },
  );
  measuredGauge(
    "devmesh_data_backlog_messages",
    "Messages that are acknowledged to devices and not stored yet.",
    backlog,
  );
  return {
    /** By QoS: `0`, or `1` for both others. */
    stored: counter("devmesh_data_records_stored_total", "Records stored.", "qos"),
    repeated: counter(
      "devmesh_data_messages_repeated_total",
      "Messages that were delivered again after they were stored.",
    ),
    dropped: counter("devmesh_data_messages_dropped_total", "Messages that will not be stored.", "reason"),
    failed: counter(
      "devmesh_data_batches_failed_total",
      "Batches that the store could not take; they are retried.",
    ),
    /** By cause: `age`, `bytes`, `purge`. */
    deleted: counter("devmesh_data_records_deleted_total", "Records deleted.", "cause"),
  };
}
