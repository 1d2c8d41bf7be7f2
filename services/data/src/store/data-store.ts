import type { DataRecord } from "@devmesh/contracts/model/data-record";
import { emptyColumns, type RecordColumns } from "@devmesh/contracts/model/record-columns";
import { native } from "@devmesh/contracts/mqtt";
import { StoreUnavailable } from "@devmesh/store/store-unavailable";
import type { SeriesStore } from "./series-store.ts";

/** Of one message (api.md, Stored data). */
export const maxPayloadBytes = native.topics.record.maxBytes;

/**
 * Position of a message in the broker's stream. Unique only with the message's `timestamp`: a broker that lost the tail
 * of its stream reuses the sequences, later (ADR 6).
 */
export interface DeliveryKey {
  /** When the broker created the stream: a new one starts again at one. */
  readonly streamCreated: string;
  readonly sequence: number;
}

/** A message on a topic of records that may be stored. */
export interface DataMessage {
  /** Null at QoS 0, which is delivered once. */
  readonly delivery: DeliveryKey | null;
  /** When the broker took the message; Unix milliseconds. */
  readonly timestamp: number;
  readonly deviceId: string;
  /** The whole topic. */
  readonly topic: string;
  /** At most {@link maxPayloadBytes}; UTF-8 where `encoding` is `text`. */
  readonly payload: Uint8Array;
  /** How the payload is shown; `filter` searches texts only. */
  readonly encoding: "text" | "base64";
}

/** The result of a batch. */
export interface AppendOutcome {
  readonly stored: number;
  /** Stored before, with the same {@link DeliveryKey} and `timestamp`. */
  readonly repeated: number;
  /** Of a device whose messages are refused. */
  readonly refused: number;
  /** The record id of each message; null for one that was not stored. */
  readonly ids: readonly (number | null)[];
}

/** Which records, in which order. All conditions must hold. */
export interface RecordSelection {
  readonly deviceId?: string;
  /** MQTT topic filter relative to the records of the device; only together with `deviceId`. */
  readonly topic?: string;
  /** Case-sensitive substring of the topic or of a text payload; not empty, without a NUL. */
  readonly filter?: string;
  /** Unix milliseconds, inclusive. */
  readonly since?: number;
  /** Unix milliseconds, exclusive. */
  readonly until?: number;
  /** By record id, the order of storing. */
  readonly order: "asc" | "desc";
}

/** Which part of the selected records. */
export interface RecordPageRequest {
  /** Reading is shared fairly between callers. */
  readonly caller: string;
  /** Negative: begins so many records before the end. */
  readonly skip: number;
  /** The most records wanted; null for all. */
  readonly limit: number | null;
  /** A `next` of the store, which replaces `skip`; or, unless `skip` is negative, a record id. */
  readonly after?: string;
  /** The most JSON of a page; at least the largest record. */
  readonly maxBytes: number;
  /** A search that takes longer returns what it has found, in milliseconds. */
  readonly searchMs: number;
}

/** Records in the requested order. May be fewer than requested, even none; `next` is null when nothing can follow. */
export interface RecordPage {
  readonly next: string | null;
  readonly items: DataRecord[];
}

/** Which of the newest records of a device's topics. */
export interface LatestRequest {
  /** Reading is shared fairly between callers. */
  readonly caller: string;
  readonly limit: number;
  /** A `next` of a page of that device. */
  readonly after?: string;
  /** The most JSON of a page; at least the largest record. */
  readonly maxBytes: number;
}

/** Which records follow, in the order of storing. Without a list, each topic or device is wanted. */
export interface FollowRequest {
  /** Reading is shared fairly between callers. */
  readonly caller: string;
  /** The record id after which it goes on; null at the end, to begin with what is stored from now on. */
  readonly after: number | null;
  /** MQTT topic filters relative to the records of a device. */
  readonly topics?: readonly string[];
  readonly deviceIds?: readonly string[];
  readonly limit: number;
  /** The most JSON of a page; at least the largest record. */
  readonly maxBytes: number;
}

/** Records that follow. `next` moves past those that are not wanted. */
export interface FollowedRecords {
  readonly records: RecordColumns;
  readonly next: number;
  /** Whether no record followed `next` when the page was read. */
  readonly atEnd: boolean;
}

/** The most records that one page looks at. */
export const maxFollowed = 10_000;

/** Collects records until a page is full. */
export class FollowedPage {
  readonly records = emptyColumns();
  readonly #limit: number;
  readonly #maxBytes: number;
  #bytes = 0;

  constructor({ limit, maxBytes }: Pick<FollowRequest, "limit" | "maxBytes">) {
    this.#limit = limit;
    this.#maxBytes = maxBytes;
  }

  /** Adds a record, or returns false where it has no room; the first one always has. */
  add(id: number, { time, topic, payload }: FollowedRecord): boolean {
    const { ids, times, topics, messages, base64 } = this.records;
    if (ids.length >= this.#limit) return false;
    const isText = typeof payload === "string";
    const message = isText
      ? payload
      : Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength).toString("base64");
    this.#bytes += Buffer.byteLength(JSON.stringify([topic, message])) + bytesOfNumbers;
    if (this.#bytes > this.#maxBytes && ids.length > 0) return false;
    ids.push(id);
    times.push(time);
    topics.push(topic);
    messages.push(message);
    if (!isText) base64.push(id);
    return true;
  }
}

/** A record that {@link FollowedPage} takes; `time` is in Unix milliseconds, bytes are a payload that is no text. */
interface FollowedRecord {
  readonly time: number;
  readonly topic: string;
  readonly payload: string | Uint8Array;
}

/** The most JSON of a record's time and of its id, twice. */
const bytesOfNumbers = 60;

/** A record as queries return it; `payload` is UTF-8 where `encoding` is `text`. */
export function dataRecord(
  id: number,
  { timestamp, deviceId, topic, payload, encoding }: Omit<DataMessage, "delivery">,
): DataRecord {
  const bytes = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength);
  const record = { id, timestamp: new Date(timestamp).toISOString(), device_id: deviceId, topic };
  if (encoding === "text") return { ...record, message: bytes.toString("utf8") };
  return { ...record, message: bytes.toString("base64"), encoding };
}

/** A cursor that is no record id and not of this store. */
export class InvalidCursor extends Error {
  override readonly name = "InvalidCursor";
}

/** A batch may have been stored. Trying it again is safe only for messages with a {@link DeliveryKey}. */
export class OutcomeUnknown extends StoreUnavailable {}

/** For metrics and retention. */
export interface StoreSize {
  /** Of the records, with indexes and without reusable space. */
  readonly bytes: number;
  /** Timestamp of the oldest record, Unix milliseconds; null when empty. */
  readonly oldest: number | null;
}

/**
 * Stored records. Their ids ascend in the order in which records become visible, and are never used twice. Several
 * processes may share a store, each with its own adapter.
 */
export interface DataStore extends SeriesStore {
  /**
   * Stores a batch, in its order, whole or not at all, one at a time over all processes; the same batch again stores
   * nothing. Durable once it resolves. @throws StoreUnavailable when nothing was stored or, as {@link OutcomeUnknown},
   * perhaps all; another error is the fault of a message
   */
  append(messages: readonly DataMessage[]): Promise<AppendOutcome>;
  /** The highest stored sequence of a stream; null without any. @throws StoreUnavailable */
  lastSequence(streamCreated: string): Promise<number | null>;
  /** Never blocks {@link append}. @throws InvalidCursor for a foreign `after`; StoreUnavailable */
  readPage(selection: RecordSelection, page: RecordPageRequest, signal: AbortSignal): Promise<RecordPage>;
  /**
   * Records after an id. @throws InvalidCursor for an id beyond the last one, as after a restore; StoreUnavailable
   */
  follow(request: FollowRequest, signal: AbortSignal): Promise<FollowedRecords>;
  /**
   * The newest record of each topic of the device, or of all for null, by the bytes of the topics; `next` is the topic
   * of the last one.
   * @throws InvalidCursor for an `after` that is no topic of the device; StoreUnavailable
   */
  readLatest(deviceId: string | null, page: LatestRequest, signal: AbortSignal): Promise<RecordPage>;
  /** How many topics the device has records of, counted up to `most`. @throws StoreUnavailable */
  countTopics(
    deviceId: string,
    request: { readonly caller: string; readonly most: number },
    signal: AbortSignal,
  ): Promise<number>;
  /** Once it resolves, {@link append} refuses the device's messages, also of a batch that was under way. Idempotent. */
  refuseDevice(deviceId: string): Promise<void>;
  /** Deletes up to `limit` records of the device and returns how many; 0 when none is left. */
  deleteRecordsOf(deviceId: string, limit: number): Promise<number>;
  /** Notes that no record of a refused device is left, for {@link unfinishedPurges}. */
  finishPurge(deviceId: string): Promise<void>;
  /** Refused devices whose records may not all be deleted yet. */
  unfinishedPurges(): Promise<readonly string[]>;
  /** Stores messages of a refused device again that are later than `moment` (Unix milliseconds). */
  admitDevice(deviceId: string, moment: number): Promise<void>;
  /** Drops admissions before `moment` (Unix milliseconds): no message that old can come any more. */
  forgetAdmissions(moment: number): Promise<void>;
  /** Deletes up to `limit` records before `moment` (Unix milliseconds), oldest first; returns how many. */
  deleteExpired(moment: number, limit: number): Promise<number>;
  /**
   * While the store is larger than `aboveBytes`, deletes at most `limit` records, the oldest of the heaviest device
   * first, and returns how many. To be called until it returns 0: a store may free its space later.
   */
  deleteHeaviest(limit: number, aboveBytes: number): Promise<number>;
  size(): Promise<StoreSize>;
  /** @throws StoreUnavailable while the store cannot be read */
  ping(): Promise<void>;
  /** Writes a little. @throws StoreUnavailable */
  checkWritable(): Promise<void>;
  /** Ends reads under way with {@link StoreUnavailable}. */
  close(): Promise<void>;
}
