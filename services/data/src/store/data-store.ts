import type { DataRecord } from "@devmesh/contracts/model/data-record";
import { StoreUnavailable } from "@devmesh/store/store-unavailable";

/** The most that a payload may weigh, in bytes (api.md, Stored data). */
export const maxPayloadBytes = 256 * 1024;

/**
 * Where a message is in the broker's stream. With the message's `timestamp` it is the same at each delivery of a
 * message, and of no other: a broker that lost the tail of its stream gives the sequences again, later (ADR 6).
 */
export interface DeliveryKey {
  /** When the broker created the stream: one created again counts from one. */
  readonly streamCreated: string;
  readonly sequence: number;
}

/** A message below `db/<deviceId>/` that has been checked and may be stored. */
export interface DataMessage {
  /** Null at QoS 0, which the broker keeps nowhere and sends once. */
  readonly delivery: DeliveryKey | null;
  /** When the broker took the message; Unix milliseconds. */
  readonly timestamp: number;
  readonly deviceId: string;
  /** The whole topic; begins with `db/<deviceId>/`. */
  readonly topic: string;
  /** At most {@link maxPayloadBytes}; UTF-8 where `encoding` is `text`. */
  readonly payload: Uint8Array;
  /** How the payload is shown; `filter` looks into texts only. */
  readonly encoding: "text" | "base64";
}

/** What became of a batch. */
export interface AppendOutcome {
  readonly stored: number;
  /** Were stored before, under the same {@link DeliveryKey} and `timestamp`. */
  readonly repeated: number;
  /** Belong to a device whose messages are refused. */
  readonly refused: number;
  /** The record id of each message of the batch; null for one that made none now. */
  readonly ids: readonly (number | null)[];
}

/** Which records, in which order. All conditions hold at once. */
export interface RecordSelection {
  readonly deviceId?: string;
  /** MQTT topic filter relative to `db/<deviceId>/`; only together with `deviceId`. */
  readonly topic?: string;
  /** Case-sensitive substring of the topic or of a text payload; not empty, without a NUL. */
  readonly filter?: string;
  /** Unix milliseconds, inclusive. */
  readonly since?: number;
  /** Unix milliseconds, exclusive. */
  readonly until?: number;
  /** By record id, that is by order of storing. */
  readonly order: "asc" | "desc";
}

/** Which part of the selected records. */
export interface PageRequest {
  /** Reading is shared fairly between callers, however many pages each asks for at one time. */
  readonly caller: string;
  /** Negative: that many before the end of the order, and then at most so many in all. */
  readonly skip: number;
  /** The most records wanted; null for all. */
  readonly limit: number | null;
  /**
   * A record id, or a `next` of the store, which stands for its own rest of `skip`; not a record id with a negative
   * `skip`.
   */
  readonly after?: string;
  /** The most that the page's records may weigh as JSON, in bytes; at least one record of the largest kind. */
  readonly maxBytes: number;
  /** How long to search before the page is handed over as it is, in milliseconds. */
  readonly searchMs: number;
}

/**
 * Records in the order asked for. It may hold fewer than wanted, even none; `next` is null where nothing can follow.
 */
export interface RecordPage {
  readonly next: string | null;
  readonly items: DataRecord[];
}

/** A cursor that is no record id and was not given by this store. */
export class InvalidCursor extends Error {
  override readonly name = "InvalidCursor";
}

/**
 * Whether a batch was stored cannot be found out now. One whose messages have a {@link DeliveryKey} is tried again
 * like any that the store could not take; of one without, that could make two records of a message.
 */
export class OutcomeUnknown extends StoreUnavailable {}

/** How the store stands; for metrics and retention. */
export interface StoreSize {
  /** What its records occupy, indexes included and reusable space excluded. */
  readonly bytes: number;
  /** Timestamp of the record taken by the broker first, Unix milliseconds; null when empty. */
  readonly oldest: number | null;
}

/**
 * Where records are kept. Record ids are given by the store and ascend in the order of storing, so that who has read
 * up to one has missed none below it; an id is never used twice. A store may be shared by several processes, each
 * with an adapter of its own.
 */
export interface DataStore {
  /**
   * Stores a batch, in its order, whole or not at all; the same batch again stores nothing. One batch at a time, over
   * all processes. What it stored survives a power cut once it resolves. @throws StoreUnavailable when the store is
   * to blame: nothing was stored, or, as {@link OutcomeUnknown}, perhaps all; another error means that one of the
   * messages is.
   */
  append(messages: readonly DataMessage[]): Promise<AppendOutcome>;
  /** The highest sequence of a stream that a record has; null without any. @throws StoreUnavailable */
  lastSequence(streamCreated: string): Promise<number | null>;
  /**
   * Reads beside a running {@link append}, which it never holds up.
   * @throws InvalidCursor for a foreign `after`; StoreUnavailable when reading broke off.
   */
  readPage(selection: RecordSelection, page: PageRequest, signal: AbortSignal): Promise<RecordPage>;
  /**
   * Once it resolves, {@link append} refuses the device's messages, also in a batch that was under way. Twice is
   * once.
   */
  refuseDevice(deviceId: string): Promise<void>;
  /** Deletes up to `limit` records of the device and tells how many; 0 when none is left. */
  deleteRecordsOf(deviceId: string, limit: number): Promise<number>;
  /** Notes that nothing of a refused device is left, so that {@link unfinishedPurges} names it no more. */
  finishPurge(deviceId: string): Promise<void>;
  /** Refused devices whose records may not all be deleted yet. */
  unfinishedPurges(): Promise<readonly string[]>;
  /** Of a refused device, takes messages later than `moment` (Unix milliseconds) again; of another, changes nothing. */
  admitDevice(deviceId: string, moment: number): Promise<void>;
  /** Forgets admissions before `moment` (Unix milliseconds): messages that old are not to be expected any more. */
  forgetAdmissions(moment: number): Promise<void>;
  /** Deletes up to `limit` records taken before `moment` (Unix milliseconds), oldest first; tells how many. */
  deleteExpired(moment: number, limit: number): Promise<number>;
  /**
   * While the store takes more than `aboveBytes`, deletes as many records as weigh what is over, at most `limit`, and
   * returns how many: the oldest of the device whose records weigh most first. Asked again until it returns 0, since
   * a store may give its room back later.
   */
  deleteHeaviest(limit: number, aboveBytes: number): Promise<number>;
  size(): Promise<StoreSize>;
  /** Resolves when the store can be asked. @throws StoreUnavailable */
  ping(): Promise<void>;
  /** Writes a little. @throws StoreUnavailable while the store takes nothing. */
  checkWritable(): Promise<void>;
  /** Ends reads under way with {@link StoreUnavailable} and lets the store be opened by another process. */
  close(): Promise<void>;
}
