import { hash, randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { maxSeriesOfDevice } from "@devmesh/contracts/model/series";
import { unlessDuplicate } from "@devmesh/store/mongodb";
import { StoreUnavailable } from "@devmesh/store/store-unavailable";
import type { AnyBulkWriteOperation } from "mongodb";
import { numbersOfMessage } from "../../numbers/numbers-of-message.ts";
import {
  type BucketWidth,
  bucketWidths,
  RolledNumbers,
  type RolledSeries,
  type SeriesKey,
  totalsOfSeries,
} from "../../numbers/rolled-numbers.ts";
import { joinedTotals, type SeriesTotals, SpanTotals, totalsOf } from "../../numbers/totals.ts";
import type { FairQueue } from "../fair-queue.ts";
import type { SeriesStore } from "../series-store.ts";
import {
  type BucketDocument,
  type CallOptions,
  type Collections,
  isRecord,
  type RecordDocument,
  type RollUpDocument,
  recordIndexes,
  type SeriesDocument,
} from "./collections.ts";
import type { IdRange, SearchSegments } from "./search-segments.ts";
import type { Writer } from "./writer.ts";

/** Sends one command of a reader through the queue. */
type AskStore = <T>(command: (options: CallOptions) => Promise<T>) => Promise<T>;

/** Bytes of a bucket with its index entries, before the server compresses them. */
const bytesOfBucket = 350;

/** Records of one part. */
const recordsOfPart = 2_000;
/** Documents of one command. */
const documentsOfCommand = 1_000;
/** How long a deletion waits for a part that is being added, in milliseconds, and how often it looks. */
const partWaitMs = 10_000;
const partLookMs = 50;

interface SeriesOptions {
  readonly closing: AbortSignal;
  /** How long another process adds nothing after one that died, in milliseconds. */
  readonly leaseMs: number;
}

/**
 * Buckets of numbers. There are no transactions, so the steps of a part are such that any of them may be repeated:
 * 1. The lease is taken, and the end of the part stored as `target`. After a crash the next process has the same part.
 * 2. Each bucket is replaced by one that has the numbers of the part, unless `upto` says that it has them.
 * 3. `done` becomes `target`. A reader adds records after `done` that a bucket does not have by its `upto`.
 *
 * Creates the document of the lease, if it is missing.
 */
export async function createSeries(
  collections: Collections,
  writer: Writer,
  segments: SearchSegments,
  queue: FairQueue,
  { closing, leaseMs }: SeriesOptions,
): Promise<SeriesStore> {
  const { run, records, rollUp, series, buckets, leftOut } = collections;
  const self = randomUUID();
  const first: RollUpDocument = { _id: "series", done: 0, target: 0, holder: null, until: new Date(0) };
  // Another process may make it at the same moment.
  await unlessDuplicate(
    run((options) =>
      rollUp.updateOne({ _id: "series" }, { $setOnInsert: first }, { upsert: true, ...options }),
    ),
  );

  async function takeLease(): Promise<RollUpDocument | null> {
    const free = { $or: [{ $in: ["$holder", [null, self]] }, { $lte: ["$until", "$$NOW"] }] };
    const taken = await run((options) =>
      rollUp.findOneAndUpdate(
        { _id: "series" },
        [
          {
            $set: {
              holder: { $cond: [free, self, "$holder"] },
              until: { $cond: [free, { $add: ["$$NOW", leaseMs] }, "$until"] },
            },
          },
        ],
        { returnDocument: "after", ...options },
      ),
    );
    if (taken === null) throw new StoreUnavailable("the document of the lease for numbers is missing");
    return taken.holder === self ? taken : null;
  }

  /** The end of the next part, and whether more follows; a part that was begun ends where it was to end. */
  async function endOfPart({ done, target }: RollUpDocument): Promise<{ to: number; more: boolean }> {
    if (target > done) return { to: target, more: true };
    const visible = await writer.visible(closing);
    const [bound] = await run((options) =>
      records
        .find({ _id: { $gt: done, $lte: visible } }, { ...options, hint: recordIndexes.id })
        .project<{ _id: number }>({ _id: 1 })
        .sort({ _id: 1 })
        .skip(recordsOfPart - 1)
        .limit(1)
        .toArray(),
    );
    return bound === undefined ? { to: visible, more: false } : { to: bound._id, more: true };
  }

  async function numbersOf(after: number, to: number): Promise<RolledSeries[]> {
    const numbers = new RolledNumbers();
    await run(async (options) => {
      const found = records
        .find(
          { _id: { $gt: after, $lte: to }, ...isRecord, text: { $exists: true } },
          { ...options, hint: recordIndexes.id },
        )
        .project<RecordDocument>({ topic: 1, text: 1, time: 1 })
        .sort({ _id: 1 });
      // One by one: all of a part may be too large for the memory.
      for await (const { topic, text = "", time } of found)
        numbers.add({ topic, timestamp: time.getTime(), message: text });
    });
    return numbers.all;
  }

  /** Stores what is new of series; returns those that may have buckets. */
  async function admit(all: readonly RolledSeries[], assertLeased: () => void): Promise<RolledSeries[]> {
    const known = new Map<string, SeriesDocument>();
    await inCommands(all.map(idOf), assertLeased, async (ids) => {
      const found = await run((options) => series.find({ _id: { $in: ids } }, options).toArray());
      for (const one of found) known.set(one._id, one);
    });
    const counts = new Map<string, number>();
    const stored: RolledSeries[] = [];
    const refused = new Map<string, number>();
    for (const one of all) {
      if (known.has(idOf(one)) || (await hasRoom(one, counts))) stored.push(one);
      else refused.set(one.deviceId, (refused.get(one.deviceId) ?? 0) + totalsOfSeries(one).count);
    }
    const operations = stored.map((one): AnyBulkWriteOperation<SeriesDocument> => {
      const { _id, ...replacement } = seriesWith(one, known.get(idOf(one)));
      return { replaceOne: { filter: { _id }, replacement, upsert: true } };
    });
    await inCommands(operations, assertLeased, (some) =>
      run((options) => series.bulkWrite(some, { ordered: false, ...options })),
    );
    const counted = [...refused].map(([_id, numbers]) => ({
      updateOne: { filter: { _id }, update: { $inc: { numbers } }, upsert: true },
    }));
    await inCommands(counted, assertLeased, (some) =>
      run((options) => leftOut.bulkWrite(some, { ordered: false, ...options })),
    );
    return stored;
  }

  /** Whether its device may have one more series, which is counted then. */
  async function hasRoom({ deviceId: device }: SeriesKey, counts: Map<string, number>): Promise<boolean> {
    const count = counts.get(device) ?? (await run((options) => series.countDocuments({ device }, options)));
    counts.set(device, count + 1);
    return count < maxSeriesOfDevice;
  }

  /** Adds the records after `done`, up to `upto`. */
  async function addBuckets(
    all: readonly RolledSeries[],
    { done, upto }: { readonly done: number; readonly upto: number },
    assertLeased: () => void,
  ): Promise<void> {
    await inCommands(bucketsIn(all), assertLeased, async (some) => {
      const ids = some.map(({ _id }) => _id);
      const found = await run((options) => buckets.find({ _id: { $in: ids } }, options).toArray());
      const before = new Map(found.map((one) => [one._id, one]));
      // In a restored backup `done` is older than the buckets, so that a part may begin before what a bucket has.
      const within = new Set(found.map((one) => one.upto).filter((has) => has > done && has < upto));
      const lacking = new Map<number, ReadonlyMap<string, SeriesTotals>>();
      for (const has of within) {
        const later = bucketsIn(await numbersOf(has, upto));
        lacking.set(has, new Map(later.map(({ _id, totals }) => [_id, totals])));
      }
      const operations = some.flatMap(
        ({ _id, device, width, start, totals: ofPart }): AnyBulkWriteOperation<BucketDocument>[] => {
          const old = before.get(_id);
          if (old !== undefined && old.upto >= upto) return [];
          const later = old && lacking.get(old.upto);
          const totals = later === undefined ? ofPart : later.get(_id);
          if (totals === undefined) return [];
          const document = { _id, device, width, start, upto, ...joinedTotals(old, totals) };
          if (old === undefined) return [{ insertOne: { document } }];
          const { _id: _, ...replacement } = document;
          // Another process may have added the part meanwhile.
          return [{ replaceOne: { filter: { _id, upto: old.upto }, replacement } }];
        },
      );
      if (operations.length > 0)
        await unlessDuplicate(
          run((options) => buckets.bulkWrite(operations, { ordered: false, ...options })),
        );
    });
  }

  /** Resolves once no part is being added that was begun before. */
  async function untilAdded(): Promise<void> {
    for (let waitedMs = 0; ; waitedMs += partLookMs) {
      const state = await run((options) => rollUp.findOne({ _id: "series" }, options));
      if (state === null || state.target === state.done) return;
      if (waitedMs >= partWaitMs) throw new StoreUnavailable("numbers of the device may be added still");
      await sleep(partLookMs);
    }
  }

  /** Whether its numbers have no buckets, since its device has the most series it may. */
  async function isLeftOut(key: SeriesKey, ask: AskStore): Promise<boolean> {
    const known = await ask((options) => series.findOne({ _id: idOf(key) }, options));
    if (known !== null) return false;
    const count = await ask((options) => series.countDocuments({ device: key.deviceId }, options));
    return count >= maxSeriesOfDevice;
  }

  async function dropSeries(found: readonly { readonly _id: string }[]): Promise<void> {
    for (const { _id } of found) {
      await run((options) => buckets.deleteMany({ _id: { $gt: `${_id}/`, $lt: `${_id}0` } }, options));
      await run((options) => series.deleteOne({ _id }, options));
    }
  }

  async function dropOldest(id: string, limit: number): Promise<number> {
    const hours = { $gte: timeId(id, "hours", 0), $lt: timeId(id, "hours", Number.MAX_SAFE_INTEGER) };
    const oldest = await run((options) =>
      buckets
        .find({ _id: hours }, { ...options, projection: { _id: 1 } })
        .sort({ _id: 1 })
        .limit(limit)
        .toArray(),
    );
    await run((options) => buckets.deleteMany({ _id: { $in: oldest.map(({ _id }) => _id) } }, options));
    return oldest.length;
  }

  return {
    async rollUp() {
      const takenMs = performance.now();
      const lease = await takeLease();
      if (lease === null) return "elsewhere";
      const { to, more } = await endOfPart(lease);
      if (to <= lease.done) return "done";
      const begun = await run((options) =>
        rollUp.updateOne(
          { _id: "series", holder: self, done: lease.done },
          { $set: { target: to } },
          options,
        ),
      );
      if (begun.matchedCount === 0) return "elsewhere";
      const numbers = await numbersOf(lease.done, to);
      const assertLeased = () => {
        // Another process may have added the part, and then a device may have been deleted.
        if (performance.now() - takenMs > leaseMs / 2)
          throw new StoreUnavailable("adding numbers took too long");
      };
      await addBuckets(await admit(numbers, assertLeased), { done: lease.done, upto: to }, assertLeased);
      await run((options) =>
        rollUp.updateOne({ _id: "series", holder: self, target: to }, { $set: { done: to } }, options),
      );
      return more ? "more" : "done";
    },

    async readSpans({ caller, deviceId, topic, pointer, edges, source, maxRecords }, signal) {
      const ask = <T>(command: (options: CallOptions) => Promise<T>) =>
        queue.run(caller, signal, () => run(command));
      const spans = new SpanTotals(edges);
      const [from, until] = [edges[0] ?? 0, edges.at(-1) ?? 0];
      const visible = await writer.visible(signal);
      const has = new Map<number, number>();
      const ranges: IdRange[] = [];
      if (source === "records") {
        const listed = await ask((options) => segments.list({ from: 1, to: visible }, options));
        for (const { _id, to, earliest, latest } of listed)
          if (earliest !== null && latest !== null && +latest >= from && +earliest < until)
            ranges.push({ from: _id, to });
        ranges.push({ from: (listed.at(-1)?.to ?? 0) + 1, to: visible });
      } else {
        // Read before the buckets: what is added meanwhile is in `upto`.
        const state = await ask((options) => rollUp.findOne({ _id: "series" }, options));
        const id = idOf({ deviceId, topic, pointer });
        const found = await ask((options) =>
          buckets
            .find({ _id: { $gte: timeId(id, source, from), $lt: timeId(id, source, until) } }, options)
            .sort({ _id: 1 })
            .toArray(),
        );
        for (const bucket of found) {
          has.set(bucket.start, bucket.upto);
          spans.add(bucket.start, totalsIn(bucket));
        }
        if (found.length === 0 && (await isLeftOut({ deviceId, topic, pointer }, ask))) return spans.spans;
        ranges.push({ from: (state?.done ?? 0) + 1, to: visible });
      }
      const width = source === "records" ? null : bucketWidths[source];
      const add = ({ _id, text = "", time }: RecordDocument) => {
        const at = time.getTime();
        if (at < from || at >= until) return;
        if (width !== null && _id <= (has.get(Math.floor(at / width) * width) ?? 0)) return;
        const number = numbersOfMessage(text).find((one) => one.pointer === pointer);
        if (number !== undefined) spans.add(at, totalsOf(number.value, at));
      };
      let looked = 0;
      for (const range of ranges) {
        for (let after = range.from - 1; ; ) {
          let found = 0;
          const before = after;
          await ask(async (options) => {
            const part = records
              .find(
                { topic, _id: { $gt: before, $lte: range.to }, text: { $exists: true } },
                { ...options, hint: recordIndexes.topic },
              )
              .project<RecordDocument>({ text: 1, time: 1 })
              .sort({ topic: 1, _id: 1 })
              .limit(documentsOfCommand);
            for await (const record of part) {
              found++;
              after = record._id;
              add(record);
            }
          });
          looked += found;
          if (source === "records" && looked > maxRecords) return null;
          if (found < documentsOfCommand) break;
        }
      }
      return spans.spans;
    },

    async listSeries(deviceId, caller, signal) {
      const [found, left] = await queue.run(caller, signal, () =>
        Promise.all([
          run((options) => series.find({ device: deviceId }, { ...options, hint: "by_device" }).toArray()),
          run((options) => leftOut.findOne({ _id: deviceId }, options)),
        ]),
      );
      const order = (a: SeriesDocument, b: SeriesDocument) =>
        Buffer.compare(Buffer.from(`${a.topic}\n${a.pointer}`), Buffer.from(`${b.topic}\n${b.pointer}`));
      return {
        series: found.sort(order).map(({ topic, pointer, firstAt, lastAt, last }) => ({
          ...{ deviceId, topic, pointer, firstAt, lastAt, last },
        })),
        leftOut: left?.numbers ?? 0,
      };
    },

    async deleteSeriesOf(deviceId, limit) {
      await untilAdded();
      const found = await run((options) =>
        series
          .find({ device: deviceId }, { ...options, projection: { _id: 1 } })
          .limit(limit)
          .toArray(),
      );
      await dropSeries(found);
      if (found.length === 0) await run((options) => leftOut.deleteOne({ _id: deviceId }, options));
      return found.length;
    },

    async expireBuckets({ minutes, hours }, signal) {
      for (const [width, before] of [
        ["minutes", minutes],
        ["hours", hours - bucketWidths.hours],
      ] as const) {
        const old = { width, start: { $lt: before } };
        for (;;) {
          signal.throwIfAborted();
          const found = await run((options) =>
            buckets
              .find(old, { ...options, hint: "by_age", projection: { _id: 1 } })
              .limit(documentsOfCommand)
              .toArray(),
          );
          if (found.length > 0)
            await run((options) =>
              buckets.deleteMany({ _id: { $in: found.map(({ _id }) => _id) } }, options),
            );
          if (found.length < documentsOfCommand) break;
        }
      }
      await run((options) => series.deleteMany({ lastAt: { $lt: hours } }, options));
    },

    async shrinkSeries(maxBytes, signal) {
      for (;;) {
        signal.throwIfAborted();
        const count = await run((options) => buckets.estimatedDocumentCount(options));
        if (count * bytesOfBucket <= maxBytes) return;
        const [heaviest] = await run((options) =>
          buckets
            .aggregate<{ readonly _id: string }>(
              [
                { $match: { width: "hours" } },
                { $group: { _id: "$device", buckets: { $sum: 1 } } },
                { $sort: { buckets: -1 } },
                { $limit: 1 },
              ],
              options,
            )
            .toArray(),
        );
        if (heaviest === undefined) return;
        const found = await run((options) =>
          series.find({ device: heaviest._id }, { ...options, projection: { _id: 1 } }).toArray(),
        );
        let removed = 0;
        for (const { _id } of found)
          removed += await dropOldest(_id, Math.ceil(documentsOfCommand / found.length));
        if (removed === 0) return;
      }
    },
  };
}

/** 128 bits: topics are longer than some servers index. */
const idLength = 22;

function idOf({ topic, pointer }: SeriesKey): string {
  return hash("sha256", `${topic}\n${pointer}`, "base64url").slice(0, idLength);
}

/** Sorts by time; from 1970 on, 16 digits hold any. */
function timeId(series: string, width: BucketWidth, at: number): string {
  return `${series}/${width}/${String(Math.max(0, at)).padStart(16, "0")}`;
}

/** The buckets of series, by their ids in the store. */
function bucketsIn(all: readonly RolledSeries[]) {
  return all.flatMap((one) =>
    one.buckets.map((bucket) => ({
      _id: timeId(idOf(one), bucket.width, bucket.start),
      device: one.deviceId,
      ...bucket,
    })),
  );
}

function totalsIn({ _id, device, width, start, upto, ...totals }: BucketDocument): SeriesTotals {
  return totals;
}

/** A series as it is stored, with what a part has of it. */
function seriesWith(one: RolledSeries, before: SeriesDocument | undefined): SeriesDocument {
  const { deviceId: device, topic, pointer } = one;
  const { firstAt, lastAt, last } = totalsOfSeries(one);
  const isNewer = before === undefined || lastAt >= before.lastAt;
  return {
    ...{ _id: idOf(one), device, topic, pointer },
    firstAt: Math.min(firstAt, before?.firstAt ?? firstAt),
    lastAt: isNewer ? lastAt : before.lastAt,
    last: isNewer ? last : before.last,
  };
}

async function inCommands<T>(
  all: readonly T[],
  assertLeased: () => void,
  command: (some: T[]) => Promise<unknown>,
): Promise<void> {
  for (let at = 0; at < all.length; at += documentsOfCommand) {
    assertLeased();
    await command(all.slice(at, at + documentsOfCommand));
  }
}
