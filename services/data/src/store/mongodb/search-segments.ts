import { randomUUID } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import { unlessDuplicate } from "@devmesh/store/mongodb";
import { Binary } from "mongodb";
import type { DeviceBytes } from "../heaviest-first.ts";
import {
  type CallOptions,
  type Collections,
  type SegmentDocument,
  type SliceDocument,
  type StoredDocument,
  weightsByDevice,
} from "./collections.ts";
import {
  columnsOf,
  createSignature,
  layoutOf,
  rowsInAll,
  type SignatureBuilder,
  signatureBytes,
  sliceOf,
} from "./signature.ts";

/** The size of a segment. */
export interface MongoSegmentBounds {
  /** Record ids of a segment. */
  readonly segmentIds: number;
  /** A segment ends earlier when its records have this weight, in bytes. */
  readonly segmentBytes: number;
}

/** A run of record ids; both inclusive. */
export interface IdRange {
  readonly from: number;
  readonly to: number;
}

/**
 * Runs of record ids, each with a search index that is built once the run is complete. Younger records have none and
 * are read through, so that storing does not wait for the index.
 */
export interface SearchSegments {
  /** Segments with ids of the range, oldest first. */
  list(range: IdRange, options: CallOptions): Promise<SegmentDocument[]>;
  /** Where a text may contain the filter, by segment; ascending, not overlapping. */
  candidates(
    segments: readonly SegmentDocument[],
    filter: string,
    options: CallOptions,
  ): Promise<readonly IdRange[][]>;
  /** The last id that is in a segment. */
  indexedTo(): Promise<number>;
  /** Builds the segments that are complete. */
  build(visible: number, signal: AbortSignal): Promise<void>;
  /** Drops segments before the record id `firstId`. */
  dropBefore(firstId: number): Promise<void>;
  /** Subtracts deleted weight by device. A segment that then weighs less than its search index loses the index. */
  lighten(segment: SegmentDocument, gone: ReadonlyMap<string, number>): Promise<void>;
  /** Counts again what each device has in a segment; corrects what a crash between two writes left wrong. */
  count(segment: SegmentDocument): Promise<void>;
  /** The weight of devices in segments up to the one that begins at `last`, heaviest first, at most 10,000. */
  heaviest(last: number): Promise<DeviceBytes[]>;
  /** Drops the shares of a device. */
  forget(device: string): Promise<void>;
}

/** Records of one read, for an index. */
const readBatchSize = 1_000;
/** Slices of one write: 512 KB. */
const sliceBatchSize = 128;
/** Shares of one write. */
const shareBatchSize = 1_000;
/** Devices ranked by weight; of more, the lightest count only with what is in no segment yet. */
const mostRanked = 10_000;
/** Up to so many rows without a candidate are read through rather than skipped. */
const rowsReadOver = 4;

/** The search segments of a database. */
export function createSearchSegments(
  collections: Collections,
  { segmentIds, segmentBytes }: MongoSegmentBounds,
): SearchSegments {
  const { run, records, segments, slices, shares, indexed } = collections;

  async function indexedTo(): Promise<number> {
    const [noted, last] = await Promise.all([
      run((options) => indexed.findOne({ _id: "sealed" }, options)),
      run((options) => segments.findOne({}, { sort: { _id: -1 }, ...options })),
    ]);
    // A segment counts also when its builder died before it noted it.
    return Math.max(noted?.to ?? 0, last?.to ?? 0);
  }

  async function noteIndexed(to: number): Promise<void> {
    await unlessDuplicate(
      run((options) => indexed.updateOne({ _id: "sealed" }, { $max: { to } }, { upsert: true, ...options })),
    );
  }

  /** The documents of a range in portions, in the order of their ids. */
  async function* readRange(
    { from, to }: IdRange,
    projection: { readonly [M in keyof StoredDocument]?: 1 },
  ): AsyncGenerator<StoredDocument[]> {
    for (let after = from - 1; ; ) {
      const found = await run((options) =>
        records
          .find({ _id: { $gt: after, $lte: to } }, { ...options, projection })
          .sort({ _id: 1 })
          .limit(readBatchSize)
          .toArray(),
      );
      yield found;
      if (found.length < readBatchSize) return;
      after = found.at(-1)?._id ?? to;
    }
  }

  /** The end of the run that begins at `from`: full by ids or by bytes; null when it is not complete yet. */
  async function endOfRun(from: number, visible: number): Promise<number | null> {
    const full = from + segmentIds - 1;
    let weight = 0;
    for await (const found of readRange({ from, to: Math.min(full, visible) }, { weight: 1 })) {
      for (const record of found) {
        weight += record.weight ?? 0;
        if (weight >= segmentBytes) return record._id;
      }
    }
    return visible >= full ? full : null;
  }

  async function buildSegment({ from, to }: IdRange): Promise<void> {
    const signature = createSignature(layoutOf(to - from + 1));
    let weight = 0;
    let [earliest, latest]: [Date | null, Date | null] = [null, null];
    for await (const found of readRange({ from, to }, { topic: 1, text: 1, time: 1, weight: 1 })) {
      for (const { _id, topic = "", text = "", time, ...record } of found) {
        signature.add(_id - from, topic);
        signature.add(_id - from, text);
        weight += record.weight ?? 0;
        if (time !== undefined && (earliest === null || time < earliest)) earliest = time;
        if (time !== undefined && (latest === null || time > latest)) latest = time;
      }
      await nextTurn();
    }
    const buildId = `${from}-${randomUUID()}`;
    await writeSlices(buildId, signature);
    const segment: SegmentDocument = { _id: from, to, build: buildId, earliest, latest, weight };
    if (await unlessDuplicate(run((options) => segments.insertOne(segment, options)))) {
      await noteIndexed(to);
      await count(segment);
    }
    // Another process was first; its segment may end elsewhere.
    else await dropSlices(buildId);
  }

  async function drop({ _id, to }: SegmentDocument): Promise<void> {
    await noteIndexed(to);
    await run((options) => shares.deleteMany(sharesOf(_id), options));
    await run((options) => segments.deleteOne({ _id }, options));
    // Also the slices of a builder that died.
    await run((options) => slices.deleteMany({ _id: { $gte: `${_id}-`, $lt: `${_id}.` } }, options));
  }

  /** Ids of a segment are final, so an empty one stays empty and is dropped. */
  async function count(counting: SegmentDocument): Promise<void> {
    const { _id: segment, to } = counting;
    const found = await weightsByDevice(collections, { $gte: segment, $lte: to });
    if (found.length === 0) return await drop(counting);
    const counted = new Map(
      found.map(({ deviceId: device, bytes: weight }) => [`${segment}/${device}`, { device, weight }]),
    );
    const known = await run((options) => shares.find(sharesOf(segment), options).toArray());
    const stale = known.filter(({ _id }) => !counted.has(_id)).map(({ _id }) => _id);
    await run((options) => shares.deleteMany({ _id: { $in: stale } }, options));
    const all = [...counted];
    for (let at = 0; at < all.length; at += shareBatchSize) {
      const updates = all.slice(at, at + shareBatchSize).map(([_id, share]) => ({
        updateOne: { filter: { _id }, update: { $set: { segment, ...share } }, upsert: true },
      }));
      await run((options) => shares.bulkWrite(updates, { ordered: false, ...options }));
    }
    const weight = found.reduce((sum, { bytes }) => sum + bytes, 0);
    await run((options) =>
      segments.updateOne({ _id: segment }, { $set: { weight, counted: true } }, options),
    );
  }

  async function writeSlices(build: string, signature: SignatureBuilder): Promise<void> {
    const all = signature.slices().map((bits, at) => ({ _id: `${build}/${at}`, bits: new Binary(bits) }));
    for (let at = 0; at < all.length; at += sliceBatchSize) {
      await run((options) => slices.insertMany(all.slice(at, at + sliceBatchSize), options));
    }
  }

  async function dropSlices(build: string): Promise<void> {
    await run((options) => slices.deleteMany({ _id: { $gte: `${build}/`, $lt: `${build}0` } }, options));
  }

  async function readSlices(ids: readonly string[], options: CallOptions): Promise<Map<string, Uint8Array>> {
    if (ids.length === 0) return new Map();
    const found = await slices
      .find({ _id: { $in: [...ids] } }, options)
      .batchSize(ids.length)
      .toArray();
    return new Map(found.map((slice: SliceDocument) => [slice._id, slice.bits.buffer]));
  }

  return {
    list({ from, to }, options) {
      return segments
        .find({ _id: { $lte: to }, to: { $gte: from } }, options)
        .sort({ _id: 1 })
        .toArray();
    },
    async candidates(asked, filter, options) {
      const columns = columnsOf(filter);
      const wanted = asked.map((segment) => {
        const layout = layoutOf(segment.to - segment._id + 1);
        return { segment, layout, slices: new Set(columns.map((column) => sliceOf(column, layout))) };
      });
      const ids = wanted.flatMap(({ segment, slices: numbers }) =>
        [...numbers].map((number) => `${segment.build}/${number}`),
      );
      const found = await readSlices(ids, options);
      return wanted.map(({ segment, layout, slices: numbers }) => {
        const given = new Map<number, Uint8Array>();
        for (const number of numbers) {
          const bits = found.get(`${segment.build}/${number}`);
          if (bits !== undefined) given.set(number, bits);
        }
        return rangesOf(segment, layout.idsPerRow, rowsInAll(columns, given, layout));
      });
    },
    indexedTo,
    async build(visible, signal) {
      while (!signal.aborted) {
        const from = (await indexedTo()) + 1;
        const to = await endOfRun(from, visible);
        if (to === null) return;
        await buildSegment({ from, to });
      }
    },
    async dropBefore(firstId) {
      for (;;) {
        const oldest = await run((options) => segments.findOne({}, { sort: { _id: 1 }, ...options }));
        if (oldest === null || oldest.to >= firstId) return;
        await drop(oldest);
      }
    },
    async lighten(segment, gone) {
      const { _id, to, build } = segment;
      const updates = [...gone].map(([device, weight]) => ({
        updateOne: { filter: { _id: `${_id}/${device}` }, update: { $inc: { weight: -weight } } },
      }));
      if (updates.length === 0) return;
      const weight = [...gone.values()].reduce((sum, one) => sum + one, 0);
      await run((options) => shares.bulkWrite(updates, { ordered: false, ...options }));
      await run((options) => segments.updateOne({ _id }, { $inc: { weight: -weight } }, options));
      if (segment.weight <= weight) return await count(segment);
      // A segment without an index is read through.
      if (segment.weight - weight < signatureBytes(layoutOf(to - _id + 1))) await dropSlices(build);
    },
    count,
    heaviest(last) {
      return run((options) =>
        shares
          .aggregate<DeviceBytes>(
            [
              { $match: { segment: { $lte: last } } },
              { $group: { _id: "$device", bytes: { $sum: "$weight" } } },
              { $sort: { bytes: -1 } },
              { $limit: mostRanked },
              { $project: { _id: 0, deviceId: "$_id", bytes: 1 } },
            ],
            options,
          )
          .toArray(),
      );
    },
    async forget(device) {
      await run((options) => shares.deleteMany({ device }, { ...options, hint: "by_device" }));
    },
  };
}

/** The shares of a segment. */
function sharesOf(segment: number) {
  return { _id: { $gte: `${segment}/`, $lt: `${segment}0` } };
}

/** The ids of rows, near ones joined. */
function rangesOf(
  { _id: first, to: last }: SegmentDocument,
  idsPerRow: number,
  found: readonly number[],
): IdRange[] {
  const ranges: { from: number; to: number }[] = [];
  for (const row of found) {
    const from = first + row * idsPerRow;
    if (from > last) break;
    const to = Math.min(from + idsPerRow - 1, last);
    const before = ranges.at(-1);
    if (before !== undefined && from - before.to <= rowsReadOver * idsPerRow + 1) before.to = to;
    else ranges.push({ from, to });
  }
  return ranges;
}
