import type { CollectionDeclaration, MongoStore } from "@devmesh/store/mongodb";
import { StoreUnavailable } from "@devmesh/store/store-unavailable";
import type { Binary, Collection } from "mongodb";
import type { BucketWidth } from "../../numbers/rolled-numbers.ts";
import type { SeriesTotals } from "../../numbers/totals.ts";
import type { DeviceBytes } from "../heaviest-first.ts";

/** A stored record. */
export interface RecordDocument {
  readonly _id: number;
  readonly device: string;
  readonly topic: string;
  /** A payload that is shown as text; any other is in `payload`. */
  readonly text?: string;
  readonly payload?: Binary;
  /** When the broker took the message. */
  readonly time: Date;
  /** `weightOf` the record, in bytes. */
  readonly weight: number;
  /** With `time` the delivery key; absent at QoS 0. */
  readonly stream?: string;
  readonly sequence?: number;
}

/** Takes an id that a writer had reserved and did not commit, so that no record can appear there. */
interface VoidDocument {
  readonly _id: number;
  /** When it was made, by the clock of the process that made it. */
  readonly void: Date;
}

/** The lease that batches are written under. Ids up to `visible` are final, those from there to `next` reserved. */
export interface WriterDocument {
  readonly _id: "writer";
  /** The batch under way; null when there is none. */
  readonly holder: string | null;
  /** End of the lease, by the server's clock. */
  readonly until: Date;
  readonly visible: number;
  readonly next: number;
}

/** The last record id that is in a search segment. */
interface IndexedDocument {
  readonly _id: "sealed";
  readonly to: number;
}

/** A run of record ids with one search index; never changed. */
export interface SegmentDocument {
  /** The first record id. */
  readonly _id: number;
  /** The last record id. */
  readonly to: number;
  /** Prefix of the ids of its slices. */
  readonly build: string;
  /** Bounds of its records' times, both inclusive; null when it has none. */
  readonly earliest: Date | null;
  readonly latest: Date | null;
  /** Of its records, in bytes. */
  readonly weight: number;
  /** Set once its shares were counted; absent where the builder died before. */
  readonly counted?: true;
}

/** The weight of the records of one device in one segment. */
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
  readonly _id: string;
  readonly purged: boolean;
  /** Messages later than this are stored again; null: none. */
  readonly admitted: Date | null;
}

/**
 * How far records are in buckets, and who adds the next ones. A backup copies it before the buckets: they may have more
 * than it says, never less.
 */
export interface RollUpDocument {
  readonly _id: "series";
  /** The last record that is in buckets. */
  readonly done: number;
  /** The last record that is being added; as `done` where none is. */
  readonly target: number;
  readonly holder: string | null;
  /** End of the lease, by the server's clock. */
  readonly until: Date;
}

/** A series of a device. */
export interface SeriesDocument {
  /** Hash of topic and pointer. */
  readonly _id: string;
  readonly device: string;
  readonly topic: string;
  readonly pointer: string;
  readonly firstAt: number;
  readonly lastAt: number;
  readonly last: number;
}

/** A bucket of a series. */
export interface BucketDocument extends SeriesTotals {
  /** `<series>/<width>/<start>`, which sorts by time. */
  readonly _id: string;
  readonly device: string;
  readonly width: BucketWidth;
  /** Unix milliseconds. */
  readonly start: number;
  /** The last record of the part that was added last; of any part before it, all are in. */
  readonly upto: number;
}

/** Numbers of a device without a series. */
interface LeftOutDocument {
  /** The device. */
  readonly _id: string;
  readonly numbers: number;
}

/** A record or a void, as a query sees it. */
export type StoredDocument = Pick<RecordDocument, "_id"> & Partial<RecordDocument> & Partial<VoidDocument>;

/** The collections of the data service's database; `writer` and `indexed` are documents of one. */
export interface Collections {
  /**
   * Runs one call of the driver that no caller's deadline bounds, within a bound of our own.
   * @throws StoreUnavailable also on a timeout
   */
  run<T>(work: (options: CallOptions) => Promise<T>): Promise<T>;
  readonly records: Collection<StoredDocument>;
  readonly writer: Collection<WriterDocument>;
  readonly indexed: Collection<IndexedDocument>;
  readonly segments: Collection<SegmentDocument>;
  readonly slices: Collection<SliceDocument>;
  readonly shares: Collection<ShareDocument>;
  readonly refusals: Collection<RefusalDocument>;
  readonly rollUp: Collection<RollUpDocument>;
  readonly series: Collection<SeriesDocument>;
  readonly buckets: Collection<BucketDocument>;
  readonly leftOut: Collection<LeftOutDocument>;
}

/** Names of the indexes of records, for the hints of queries. */
export const recordIndexes = {
  id: "_id_",
  device: "by_device",
  topic: "by_topic",
  time: "by_time",
  delivery: "by_delivery_and_time",
  void: "by_void",
} as const;

/** The collections that need an index besides `_id`. */
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
      { name: recordIndexes.void, key: { void: 1 }, sparse: true },
    ],
  },
  { name: "shares", indexes: [{ name: "by_device", key: { device: 1 } }] },
  { name: "refusals", indexes: [{ name: "by_purge", key: { purged: 1, admitted: 1 } }] },
  { name: "series", indexes: [{ name: "by_device", key: { device: 1 } }] },
  { name: "buckets", indexes: [{ name: "by_age", key: { width: 1, start: 1 } }] },
];

/** The options of a call of the driver. */
export interface CallOptions {
  readonly timeoutMS: number;
}

/** Matches records alone. */
export const isRecord = { void: { $exists: false } } as const;

/** The weight of the records with such ids, by device. */
export function weightsByDevice(
  { run, records }: Collections,
  _id: { readonly $gt: number } | { readonly $gte: number; readonly $lte: number },
): Promise<DeviceBytes[]> {
  const pipeline = [
    { $match: { _id, ...isRecord } },
    { $group: { _id: "$device", bytes: { $sum: "$weight" } } },
    { $project: { _id: 0, deviceId: "$_id", bytes: 1 } },
  ];
  return run((options) =>
    records.aggregate<DeviceBytes>(pipeline, { ...options, hint: recordIndexes.id }).toArray(),
  );
}

const callTimeoutMs = 10_000;
/** The driver's own timeout comes first, with a more precise error. */
const graceMs = 500;

/** The collections of an open database. */
export function collectionsOf(store: MongoStore): Collections {
  const { db } = store;
  return {
    async run(work) {
      const deadline = new AbortController();
      const timer = setTimeout(
        () => deadline.abort(new StoreUnavailable("the database did not answer in time")),
        callTimeoutMs + graceMs,
      );
      try {
        return await store.run(deadline.signal, () => work({ timeoutMS: callTimeoutMs }));
      } finally {
        clearTimeout(timer);
      }
    },
    records: db.collection("records"),
    writer: db.collection("state"),
    indexed: db.collection("state"),
    segments: db.collection("segments"),
    slices: db.collection("slices"),
    shares: db.collection("shares"),
    refusals: db.collection("refusals"),
    rollUp: db.collection("roll_up"),
    series: db.collection("series"),
    buckets: db.collection("buckets"),
    leftOut: db.collection("series_left_out"),
  };
}
