import { randomUUID } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import { isDuplicateKey, type MongoStore } from "@devmesh/store/mongodb";
import { Binary } from "mongodb";
import type { Collections, SegmentDocument, SliceDocument } from "./collections.ts";
import { asWriter } from "./deadline.ts";
import {
  columnsOf,
  createSignature,
  layoutOf,
  rowsInAll,
  type SignatureBuilder,
  sliceOf,
} from "./signature.ts";

/** How large a segment gets. */
export interface SegmentBounds {
  /** Record ids of a segment. */
  readonly segmentIds: number;
  /** A segment is closed before when its records weigh so much, in bytes. */
  readonly segmentBytes: number;
}

/** A run of record ids; both inclusive. */
export interface IdRange {
  readonly from: number;
  readonly to: number;
}

/**
 * Records in runs, each with a search index beside it, made once no more record can come into the run. What is younger has none and
 * is read through, so that storing does not wait for the index and a missing one is no fault.
 */
export interface SearchSegments {
  /** All there are, oldest first, that hold ids of the range. */
  list(range: IdRange, signal: AbortSignal): Promise<SegmentDocument[]>;
  /** Where in segments a text may hold the filter, by segment; ascending, not overlapping. */
  candidates(
    segments: readonly SegmentDocument[],
    filter: string,
    signal: AbortSignal,
  ): Promise<readonly IdRange[][]>;
  /** The last id that is in a segment. */
  sealedTo(): Promise<number>;
  /** Makes segments of what is complete, until there is nothing more or the signal aborts. */
  seal(visible: number, signal: AbortSignal): Promise<void>;
  /** Forgets segments before the record id `firstId`. */
  dropBefore(firstId: number): Promise<void>;
  /** What a segment was counted to hold has gone. */
  lighten(segment: SegmentDocument, weight: number): Promise<void>;
}

/** How many records are read at once for an index. */
const readAtOnce = 1_000;
/** How many slices are written at once: 512 KB. */
const slicesAtOnce = 128;
/** Rows without a candidate between two with one, over which a search rather reads on than begins anew. */
const rowsReadOver = 4;

/** The search segments of a database. */
export function createSearchSegments(
  store: MongoStore,
  { records, segments, slices, sealed }: Collections,
  { segmentIds, segmentBytes }: SegmentBounds,
): SearchSegments {
  async function sealedTo(): Promise<number> {
    const [noted, last] = await Promise.all([
      asWriter(store, (options) => sealed.findOne({ _id: "sealed" }, options)),
      asWriter(store, (options) => segments.findOne({}, { sort: { _id: -1 }, ...options })),
    ]);
    // A segment whose maker died before it noted it counts all the same.
    return Math.max(noted?.to ?? 0, last?.to ?? 0);
  }

  async function noteSealed(to: number): Promise<void> {
    await asWriter(store, (options) =>
      sealed.updateOne({ _id: "sealed" }, { $max: { to } }, { upsert: true, ...options }),
    ).catch((error: unknown) => {
      if (!isDuplicateKey(error)) throw error;
    });
  }

  /** The end of the run that begins at `from`: full by ids or by bytes; null when it is not complete yet. */
  async function endOfRun(from: number, visible: number): Promise<number | null> {
    const full = from + segmentIds - 1;
    let weight = 0;
    for (let at = from - 1; ; ) {
      const found = await asWriter(store, (options) =>
        records
          .find({ _id: { $gt: at, $lte: Math.min(full, visible) } }, options)
          .project<{ _id: number; weight?: number }>({ weight: 1 })
          .sort({ _id: 1 })
          .limit(readAtOnce)
          .toArray(),
      );
      for (const record of found) {
        weight += record.weight ?? 0;
        if (weight >= segmentBytes) return record._id;
        at = record._id;
      }
      if (found.length < readAtOnce) return visible >= full ? full : null;
    }
  }

  async function makeSegment({ from, to }: IdRange): Promise<void> {
    const signature = createSignature(layoutOf(to - from + 1));
    let weight = 0;
    let [earliest, latest]: [Date | null, Date | null] = [null, null];
    for (let at = from - 1; ; ) {
      const found = await asWriter(store, (options) =>
        records
          .find({ _id: { $gt: at, $lte: to } }, options)
          .project<{ _id: number; topic?: string; text?: string; time?: Date; weight?: number }>({
            topic: 1,
            text: 1,
            time: 1,
            weight: 1,
          })
          .sort({ _id: 1 })
          .limit(readAtOnce)
          .toArray(),
      );
      for (const { _id, topic = "", text = "", time, ...record } of found) {
        signature.add(_id - from, topic);
        signature.add(_id - from, text);
        weight += record.weight ?? 0;
        if (time !== undefined && (earliest === null || time < earliest)) earliest = time;
        if (time !== undefined && (latest === null || time > latest)) latest = time;
        at = _id;
      }
      if (found.length < readAtOnce) break;
      await nextTurn();
    }
    const build = `${from}-${randomUUID()}`;
    await writeSlices(build, signature);
    const segment: SegmentDocument = { _id: from, to, build, earliest, latest, weight };
    const isOurs = await asWriter(store, (options) => segments.insertOne(segment, options)).then(
      () => true,
      (error: unknown) => {
        if (isDuplicateKey(error)) return false;
        throw error;
      },
    );
    if (isOurs) await noteSealed(to);
    // The other one may end elsewhere, where records had gone in between: it tells itself how far it goes.
    else await dropSlices(build);
  }

  async function writeSlices(build: string, signature: SignatureBuilder): Promise<void> {
    const all = signature.slices().map((bits, at) => ({ _id: `${build}/${at}`, bits: new Binary(bits) }));
    for (let at = 0; at < all.length; at += slicesAtOnce) {
      await asWriter(store, (options) => slices.insertMany(all.slice(at, at + slicesAtOnce), options));
    }
  }

  async function dropSlices(build: string): Promise<void> {
    await asWriter(store, (options) =>
      slices.deleteMany({ _id: { $gte: `${build}/`, $lt: `${build}0` } }, options),
    );
  }

  async function readSlices(ids: readonly string[], signal: AbortSignal): Promise<Map<string, Uint8Array>> {
    if (ids.length === 0) return new Map();
    const found = await store.run(signal, () =>
      slices
        .find({ _id: { $in: [...ids] } }, { signal })
        .batchSize(ids.length)
        .toArray(),
    );
    return new Map(found.map((slice: SliceDocument) => [slice._id, slice.bits.buffer]));
  }

  return {
    list({ from, to }, signal) {
      return store.run(signal, () =>
        segments
          .find({ _id: { $lte: to }, to: { $gte: from } }, { signal })
          .sort({ _id: 1 })
          .toArray(),
      );
    },
    async candidates(asked, filter, signal) {
      const columns = columnsOf(filter);
      const wanted = asked.map((segment) => {
        const layout = layoutOf(segment.to - segment._id + 1);
        return { segment, layout, slices: new Set(columns.map((column) => sliceOf(column, layout))) };
      });
      const ids = wanted.flatMap(({ segment, slices: numbers }) =>
        [...numbers].map((number) => `${segment.build}/${number}`),
      );
      const found = await readSlices(ids, signal);
      return wanted.map(({ segment, layout, slices: numbers }) => {
        const given = new Map<number, Uint8Array>();
        for (const number of numbers) {
          const bits = found.get(`${segment.build}/${number}`);
          if (bits !== undefined) given.set(number, bits);
        }
        return rangesOf(segment, layout.idsPerRow, rowsInAll(columns, given, layout));
      });
    },
    sealedTo,
    async seal(visible, signal) {
      while (!signal.aborted) {
        const from = (await sealedTo()) + 1;
        const to = await endOfRun(from, visible);
        if (to === null) return;
        await makeSegment({ from, to });
      }
    },
    async dropBefore(firstId) {
      for (;;) {
        const oldest = await asWriter(store, (options) =>
          segments.findOne({}, { sort: { _id: 1 }, ...options }),
        );
        if (oldest === null || oldest.to >= firstId) return;
        await noteSealed(oldest.to);
        await asWriter(store, (options) => segments.deleteOne({ _id: oldest._id }, options));
        // Also what a maker that died left of it.
        await asWriter(store, (options) =>
          slices.deleteMany({ _id: { $gte: `${oldest._id}-`, $lt: `${oldest._id}.` } }, options),
        );
      }
    },
    async lighten({ _id }, weight) {
      await asWriter(store, (options) => segments.updateOne({ _id }, { $inc: { weight: -weight } }, options));
    },
  };
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
