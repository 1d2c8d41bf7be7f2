import type { dataEvents } from "@devmesh/contracts/data";
import { recordsWantedMs } from "@devmesh/contracts/gateway";
import type { DataRecord } from "@devmesh/contracts/model/data-record";
import type { Clock } from "@devmesh/service-kit/clock";
import type { Publisher } from "@devmesh/service-kit/events/publisher";
import { type DataMessage, dataRecord } from "../store/data-store.ts";

/** Payload and topics of one event: JSON may be six times as large, and must stay below the broker's `max_payload`. */
const maxChunkBytes = 128 * 1024;
/** JSON of a record besides payload and topic, in bytes. */
const recordOverhead = 200;

/** Publishes records that were just stored while a gateway wants them (ADR 20). */
export type RecordFeed = ReturnType<typeof createRecordFeed>;

/** Publishes the event `stored`. */
export function createRecordFeed(publisher: Publisher<typeof dataEvents>, clock: Clock) {
  // A process that has just started does not know yet whether a gateway wants records.
  let wantedUntilMs = clock.monotonicMs() + recordsWantedMs;

  function publishChunk(records: readonly DataRecord[]): void {
    const outcome = publisher.stored({ records: [...records] });
    if (outcome !== "too_large" || records.length < 2) return;
    const half = Math.ceil(records.length / 2);
    publishChunk(records.slice(0, half));
    publishChunk(records.slice(half));
  }

  return {
    /** A gateway wants records for the next {@link recordsWantedMs}. */
    want(): void {
      wantedUntilMs = clock.monotonicMs() + recordsWantedMs;
    },
    /** Best effort: neither throws nor waits. `ids` are the messages' record ids, null for one without a record. */
    publish(messages: readonly DataMessage[], ids: readonly (number | null)[]): void {
      if (clock.monotonicMs() > wantedUntilMs) return;
      let records: DataRecord[] = [];
      let bytes = 0;
      for (const [at, message] of messages.entries()) {
        const id = ids[at];
        if (id === undefined || id === null) continue;
        const weight = message.payload.length + message.topic.length + recordOverhead;
        if (records.length > 0 && bytes + weight > maxChunkBytes) {
          publishChunk(records);
          records = [];
          bytes = 0;
        }
        records.push(dataRecord(id, message));
        bytes += weight;
      }
      if (records.length > 0) publishChunk(records);
    },
  };
}
