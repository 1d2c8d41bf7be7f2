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
  function gauge(name: string, help: string, read: () => Promise<number | null>): void {
    new Gauge({
      name,
      help,
      registers,
      async collect() {
        const value = await read().catch(() => null);
        // Absent is unknown; an old value would be wrong.
        if (value === null) this.remove();
        else this.set(value);
      },
    });
  }
  function counter<Label extends string>(name: string, help: string, ...labelNames: Label[]): Counter<Label> {
    return new Counter({ name, help, labelNames, registers });
  }
  gauge(
    "devmesh_data_store_bytes",
    "Size of the stored records, indexes included.",
    async () => (await store.size()).bytes,
  );
  gauge(
    "devmesh_data_oldest_record_timestamp_seconds",
    "When the broker received the oldest record; absent without records.",
    async () => {
      const { oldest } = await store.size();
      return oldest === null ? null : oldest / 1000;
    },
  );
  gauge(
    "devmesh_data_backlog_messages",
    "Messages that are acknowledged to devices and not stored yet.",
    backlog,
  );
  return {
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
    deleted: counter("devmesh_data_records_deleted_total", "Records deleted.", "cause"),
  };
}
