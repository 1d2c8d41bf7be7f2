import type { CollectionDeclaration } from "@devmesh/store/mongodb";
import type { Binary, Collection, Db } from "mongodb";

/** A stored record. */
export interface RecordDocument {
  /** The record's id. */
  readonly _id: number;
  readonly device: string;
  readonly topic: string;
  /** A payload that is shown as text. */
  readonly text?: string;
  /** Any other payload. */
  readonly payload?: Binary;
  /** When the broker took the message. */
  readonly time: Date;
  /** What the record takes up, in bytes: `weightOf`. */
  readonly weight: number;
  /** With `time` the delivery key; absent at QoS 0. */
  readonly stream?: string;
  readonly sequence?: number;
}

/** Stands where no record is to appear any more: an id that a writer had reserved and did not commit. */
interface VoidDocument {
  readonly _id: number;
  /** When it was found out, by the clock of the process that did. */
  readonly void: Date;
}

/**
 * The one document by which batches take turns. Ids up to `visible` are final; those from there up to `next` are
 * reserved.
 */
export interface WriterDocument {
  readonly _id: "writer";
  /** Names the batch under way; null when there is none. */
  readonly holder: string | null;
  /** Until when the holder may go on, by the server's clock. */
  readonly until: Date;
  readonly visible: number;
  readonly next: number;
}

/** How far records are in search segments. */
interface SealedDocument {
  readonly _id: "sealed";
  /** The last record id that is. */
  readonly to: number;
}

/** A run of record ids with a search index of its own; never changed. */
export interface SegmentDocument {
  /** The first record id. */
  readonly _id: number;
  /** The last record id. */
  readonly to: number;
  /** Names its slices. */
  readonly build: string;
  /** Bounds of its records' times, both inclusive; null when it has none. */
  readonly earliest: Date | null;
  readonly latest: Date | null;
  /** What its records weigh. */
  readonly weight: number;
  /** Whether its shares were counted; absent until then, and on segments of older releases. */
  readonly counted?: true;
}

/** What the records of one device in one segment weigh. */
interface ShareDocument {
  /** `<segment>/<device>`. */
  readonly _id: string;
  /** The first record id of the segment. */
  readonly segment: number;
  readonly device: string;
  readonly weight: number;
}

/** A part of a segment's search index. */
export interface SliceDocument {
  /** `<build>/<number>`. */
  readonly _id: string;
  readonly bits: Binary;
}

/** A device whose messages are refused, or were up to a moment. */
interface RefusalDocument {
  /** The device's id. */
  readonly _id: string;
  readonly purged: boolean;
  /** Messages later than this are taken again; null: none. */
  readonly admitted: Date | null;
}

/** What may stand under a record id, as a query sees it: a record or a void. */
export type StoredDocument = Pick<RecordDocument, "_id"> & Partial<RecordDocument> & Partial<VoidDocument>;

/** The collections of the data service's database; `writer` and `sealed` are documents of one. */
export interface Collections {
  readonly records: Collection<StoredDocument>;
  readonly writer: Collection<WriterDocument>;
  readonly sealed: Collection<SealedDocument>;
  readonly segments: Collection<SegmentDocument>;
  readonly slices: Collection<SliceDocument>;
  readonly shares: Collection<ShareDocument>;
  readonly refusals: Collection<RefusalDocument>;
}

/** Names of the indexes of records, for queries to insist on. */
export const recordIndexes = {
  id: "_id_",
  device: "by_device",
  topic: "by_topic",
  time: "by_time",
  delivery: "by_delivery_and_time",
  void: "by_void",
} as const;

/** All collections with the indexes that their queries need; `_id` has its own. */
export const collectionDeclarations: readonly CollectionDeclaration[] = [
  {
    name: "records",
    indexes: [
      { name: recordIndexes.device, key: { device: 1, _id: 1 } },
      { name: recordIndexes.topic, key: { topic: 1, _id: 1 } },
      { name: recordIndexes.time, key: { time: 1 } },
      {
        name: recordIndexes.delivery,
        key: { stream: 1, sequence: 1, time: 1 },
        unique: true,
        partialFilterExpression: { sequence: { $exists: true } },
      },
      // Of voids alone, which are few.
      { name: recordIndexes.void, key: { void: 1 }, sparse: true },
    ],
    // It refused a message whose sequence the broker had given before (ADR 6).
    replacedIndexes: ["by_delivery"],
  },
  { name: "shares", indexes: [{ name: "by_device", key: { device: 1 } }] },
  { name: "refusals", indexes: [{ name: "by_purge", key: { purged: 1, admitted: 1 } }] },
];

/** The collections of an open database. */
export function collectionsOf(db: Db): Collections {
  return {
    records: db.collection("records"),
    writer: db.collection("state"),
    sealed: db.collection("state"),
    segments: db.collection("segments"),
    slices: db.collection("slices"),
    shares: db.collection("shares"),
    refusals: db.collection("refusals"),
  };
}
