import type { dataEvents } from "@devmesh/contracts/data";
import { recordsWantedMs } from "@devmesh/contracts/gateway";
import type { DataRecord } from "@devmesh/contracts/model/data-record";
import type { Clock } from "@devmesh/service-kit/clock";
import type { Publisher } from "@devmesh/service-kit/events";
import type { DataMessage } from "../store/data-store.ts";

/**
 * Most bytes of payload and topic told in one event: as JSON they may grow sixfold, and must stay below the broker's
 * `max_payload`.
 */
const maxChunkBytes = 128 * 1024;
/** What a record weighs beside its payload and topic. */
const recordOverhead = 200;

/** Tells gateways of records that were just stored, while one of them wants them (ADR 20). Costs nothing otherwise. */
export interface RecordFeed {
  /** A gateway wants records for the next {@link recordsWantedMs}. */
  want(): void;
  /** Best effort: neither throws nor waits. `ids` are the messages' record ids, null for one that made none. */
  tell(messages: readonly DataMessage[], ids: readonly (number | null)[]): void;
}

/** A feed of the event `stored`. */
export function createRecordFeed(publisher: Publisher<typeof dataEvents>, clock: Clock): RecordFeed {
  // A process that has just started has not heard who wants records yet.
  let wantedUntilMs = clock.monotonicMs() + recordsWantedMs;

  function publish(records: readonly DataRecord[]): void {
    const outcome = publisher.live.stored({ records: [...records] });
    if (outcome !== "too_large" || records.length < 2) return;
    const half = Math.ceil(records.length / 2);
    publish(records.slice(0, half));
    publish(records.slice(half));
  }

  return {
    want() {
      wantedUntilMs = clock.monotonicMs() + recordsWantedMs;
    },
    tell(messages, ids) {
      if (clock.monotonicMs() > wantedUntilMs) return;
      let records: DataRecord[] = [];
      let bytes = 0;
      for (const [at, message] of messages.entries()) {
        const id = ids[at];
        if (id === undefined || id === null) continue;
        const weight = message.payload.length + message.topic.length + recordOverhead;
        if (records.length > 0 && bytes + weight > maxChunkBytes) {
          publish(records);
          records = [];
          bytes = 0;
        }
        records.push(recordOf(id, message));
        bytes += weight;
      }
      if (records.length > 0) publish(records);
    },
  };
}

/** The record as queries give it. */
function recordOf(id: number, { timestamp, deviceId, topic, payload, encoding }: DataMessage): DataRecord {
  const bytes = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength);
  return {
    id,
    timestamp: new Date(timestamp).toISOString(),
    device_id: deviceId,
    topic,
    message: bytes.toString(encoding === "text" ? "utf8" : "base64"),
    ...(encoding === "base64" && { encoding }),
  };
}
