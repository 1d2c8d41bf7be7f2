import { unlessDuplicate } from "@devmesh/store/mongodb";
import { StoreUnavailable } from "@devmesh/store/store-unavailable";
import { Binary, MongoServerError } from "mongodb";
import type { AppendOutcome, DataMessage } from "../data-store.ts";
import { weightOf } from "../record-weight.ts";
import { type Collections, type RecordDocument, recordIndexes } from "./collections.ts";
import type { Refusals } from "./refusals.ts";
import type { Writer } from "./writer.ts";

/** Stores a batch. See {@link DataStore.append}. */
export async function appendRecords(
  { run, records }: Collections,
  writer: Writer,
  refusals: Refusals,
  messages: readonly DataMessage[],
): Promise<AppendOutcome> {
  const stored = writer.write(messages.length, async ({ firstId, noteStored }) => {
    // All that is found of earlier batches is committed: the rest was made void when this lease began.
    const [stored, isAdmitted] = await Promise.all([storedBefore(messages), refusals.admitted(messages)]);
    const documents: RecordDocument[] = [];
    const ids: (number | null)[] = messages.map(() => null);
    let repeated = 0;
    let refused = 0;
    for (const [at, message] of messages.entries()) {
      const key = nameOf(message);
      if (!isAdmitted(message)) refused++;
      else if (key !== null && stored.has(key)) repeated++;
      else {
        if (key !== null) stored.add(key);
        ids[at] = firstId + at;
        documents.push(documentOf(firstId + at, message));
      }
    }
    const last = documents.at(-1);
    if (last === undefined) return { stored: 0, repeated, refused, ids };
    if (!(await unlessDuplicate(run((options) => records.insertMany(documents, options)))))
      throw new StoreUnavailable("the lease expired and another process took it");
    noteStored(last._id);
    return { stored: documents.length, repeated, refused, ids };
  });
  return await stored.catch((error: unknown) => {
    // Only what the server can never store is dropped; any other refusal, such as a changed password, is retried.
    if (!(error instanceof MongoServerError) || documentFaults.has(Number(error.code))) throw error;
    throw new StoreUnavailable("the database refuses to store", { cause: error });
  });

  /** Which of the messages have a record, by {@link nameOf}. */
  async function storedBefore(batch: readonly DataMessage[]): Promise<Set<string>> {
    const deliveries = batch.flatMap(({ delivery }) => delivery ?? []);
    const stored = new Set<string>();
    for (const [stream, ofStream] of Map.groupBy(deliveries, ({ streamCreated }) => streamCreated)) {
      const all = ofStream.map(({ sequence }) => sequence);
      const found = await run((options) =>
        records
          .find({ stream, sequence: amongAll(all) }, { ...options, hint: recordIndexes.delivery })
          .project<{ sequence: number; time: Date }>({ _id: 0, sequence: 1, time: 1 })
          .batchSize(all.length + 1)
          .toArray(),
      );
      for (const { sequence, time } of found) stored.add(deliveryName(stream, sequence, time.getTime()));
    }
    return stored;
  }
}

/** Codes for a document that a server will not store: InvalidBSON, DocumentValidationFailure, BSONObjectTooLarge. */
const documentFaults: ReadonlySet<number> = new Set([22, 121, 10_334]);

/** A batch is mostly one run of sequences; one with wide gaps is looked up by each of them. */
function amongAll(sequences: readonly number[]) {
  const [low, high] = [Math.min(...sequences), Math.max(...sequences)];
  return high - low < 2 * sequences.length ? { $gte: low, $lte: high } : { $in: [...sequences] };
}

/** Equal for each delivery of a message, and for no other message; null at QoS 0. */
function nameOf({ delivery, timestamp }: DataMessage): string | null {
  return delivery && deliveryName(delivery.streamCreated, delivery.sequence, timestamp);
}

function deliveryName(streamCreated: string, sequence: number, timestamp: number): string {
  return `${streamCreated}/${sequence}/${timestamp}`;
}

function documentOf(id: number, message: DataMessage): RecordDocument {
  const { delivery, timestamp, deviceId, topic, payload, encoding } = message;
  const bytes = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength);
  return {
    _id: id,
    device: deviceId,
    topic,
    ...(encoding === "text" ? { text: bytes.toString("utf8") } : { payload: new Binary(bytes) }),
    time: new Date(timestamp),
    weight: weightOf(deviceId, topic, bytes.length),
    ...(delivery === null ? {} : { stream: delivery.streamCreated, sequence: delivery.sequence }),
  };
}
