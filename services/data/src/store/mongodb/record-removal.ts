import type { Filter, Sort } from "mongodb";
import type { DataStore, StoreSize } from "../data-store.ts";
import { chooseHeaviestFirst, type DeviceBytes, payersOf, type WeighedRecord } from "../heaviest-first.ts";
import {
  type Collections,
  isRecord,
  recordIndexes,
  type SegmentDocument,
  type StoredDocument,
  weightsByDevice,
} from "./collections.ts";
import type { IdRange, SearchSegments } from "./search-segments.ts";

type RemovalMethods = Pick<DataStore, "deleteRecordsOf" | "deleteExpired" | "deleteHeaviest" | "size">;

/** How long a void stays, in milliseconds: far longer than the insert that it excludes can be under way. */
const voidStaysMs = 3_600_000;

interface RemovableRecords {
  readonly where: Filter<StoredDocument>;
  readonly hint: string;
  readonly sort: Sort;
}

/** Deletes records, and returns what is left. */
export function createRecordRemoval(collections: Collections, segments: SearchSegments): RemovalMethods {
  const { run, records } = collections;
  const listSegments = (range: IdRange) => run((options) => segments.list(range, options));

  /** 0 only when there is none: where another process was faster, it looks again. */
  async function remove(selected: RemovableRecords, limit: number): Promise<number> {
    for (;;) {
      const found = await first(selected, limit);
      if (found.length === 0) return 0;
      const deleted = await deleteAll(found);
      if (deleted > 0) return deleted;
    }
  }

  async function first({ where, hint, sort }: RemovableRecords, limit: number): Promise<WeighedRecord[]> {
    const found = await run((options) =>
      records
        .find(where, { ...options, hint, batchSize: limit })
        .project<{ _id: number; device: string; weight: number }>({ device: 1, weight: 1 })
        .sort(sort)
        .limit(limit)
        .toArray(),
    );
    return found.map(({ _id: id, device: deviceId, weight }) => ({ id, deviceId, weight }));
  }

  async function deleteAll(found: readonly WeighedRecord[]): Promise<number> {
    const { deletedCount } = await run((options) =>
      records.deleteMany({ _id: { $in: found.map(({ id }) => id) } }, options),
    );
    // Two processes may have found the same records: each has deleted a part, and subtracts that share.
    if (deletedCount > 0) await lightenSegments(found, deletedCount / found.length);
    return deletedCount;
  }

  /** A process that dies before leaves the segments too heavy, until they are counted again. */
  async function lightenSegments(gone: readonly WeighedRecord[], share: number): Promise<void> {
    const ids = gone.map(({ id }) => id);
    const range = { from: Math.min(...ids), to: Math.max(...ids) };
    for (const segment of await listSegments(range)) {
      const weights = new Map<string, number>();
      for (const { id, deviceId, weight } of gone) {
        if (id < segment._id || id > segment.to) continue;
        weights.set(deviceId, (weights.get(deviceId) ?? 0) + weight);
      }
      for (const [deviceId, weight] of weights) weights.set(deviceId, Math.round(weight * share));
      await segments.lighten(segment, weights);
    }
    const first = { hint: recordIndexes.id, sort: { _id: 1 }, projection: { _id: 1 } } as const;
    const oldest = await run((options) => records.findOne(isRecord, { ...options, ...first }));
    await segments.dropBefore(oldest?._id ?? range.to + 1);
  }

  async function removeOldVoids(): Promise<void> {
    const before = new Date(Date.now() - voidStaysMs);
    await run((options) =>
      records.deleteMany({ void: { $lt: before } }, { ...options, hint: recordIndexes.void }),
    );
  }

  const allSegments = () => listSegments({ from: 1, to: Number.MAX_SAFE_INTEGER });

  /** The weight by device of records that are in no segment yet. */
  const young = (indexed: readonly SegmentDocument[]) =>
    weightsByDevice(collections, { $gt: indexed.at(-1)?.to ?? 0 });

  const totalOf = (indexed: readonly SegmentDocument[], others: readonly DeviceBytes[]) =>
    others.reduce((sum, { bytes }) => sum + bytes, 0) + indexed.reduce((sum, { weight }) => sum + weight, 0);

  /** All segments; those of a builder that died are counted now. */
  async function countedSegments(): Promise<SegmentDocument[]> {
    const listed = await allSegments();
    const uncounted = listed.filter(({ counted }) => counted !== true);
    for (const segment of uncounted) await segments.count(segment);
    return uncounted.length === 0 ? listed : await allSegments();
  }

  /** The weight of devices, heaviest first. */
  async function heaviest(
    indexed: readonly SegmentDocument[],
    others: readonly DeviceBytes[],
  ): Promise<DeviceBytes[]> {
    const weights = new Map(others.map(({ deviceId, bytes }) => [deviceId, bytes]));
    const ranked = await segments.heaviest(indexed.at(-1)?._id ?? 0);
    for (const { deviceId, bytes } of ranked) weights.set(deviceId, bytes + (weights.get(deviceId) ?? 0));
    return [...weights]
      .map(([deviceId, bytes]) => ({ deviceId, bytes }))
      .filter(({ bytes }) => bytes > 0)
      .sort((a, b) => b.bytes - a.bytes);
  }

  const ofDevice = (device: string): RemovableRecords => ({
    where: { device },
    hint: recordIndexes.device,
    sort: { device: 1, _id: 1 },
  });

  async function removeHeaviest(limit: number, aboveBytes: number): Promise<number> {
    for (;;) {
      // Weighed each time: other processes delete, too.
      const indexed = await countedSegments();
      const others = await young(indexed);
      const enough = totalOf(indexed, others) - aboveBytes;
      if (enough <= 0) return 0;
      const devices = await heaviest(indexed, others);
      const payers = payersOf(devices, enough).slice(0, payerBatchSize);
      const ofEach = Math.ceil(limit / payers.length) + 1;
      const oldest = new Map<string, { readonly records: WeighedRecord[]; readonly all: boolean }>();
      await Promise.all(
        payers.map(async ({ deviceId }) => {
          const found = await first(ofDevice(deviceId), ofEach);
          oldest.set(deviceId, { records: found, all: found.length < ofEach });
          // A process died before it updated the weight: the device has nothing.
          if (found.length === 0) await segments.forget(deviceId);
        }),
      );
      const oldestOf = (deviceId: string) => {
        const known = oldest.get(deviceId);
        return known?.records.shift() ?? (known?.all === true ? null : "unread");
      };
      const chosen = chooseHeaviestFirst(devices, oldestOf, { limit, enough });
      if (chosen.length === 0) {
        if (payers.length === 0) return 0;
        continue;
      }
      const deleted = await deleteAll(chosen);
      if (deleted > 0) return deleted;
    }
  }

  /** Counts the next segment again, which corrects in time what a process that died left wrong. */
  async function countNextSegment(): Promise<void> {
    const listed = await allSegments();
    const next = listed.find(({ _id }) => _id > lastCounted) ?? listed[0];
    if (next === undefined) return;
    lastCounted = next._id;
    await segments.count(next);
  }
  let lastCounted = 0;

  async function size(): Promise<StoreSize> {
    const indexed = await allSegments();
    const others = await young(indexed);
    const first = { hint: recordIndexes.time, sort: { time: 1 }, projection: { time: 1 } } as const;
    const timed = { time: { $gte: new Date(0) } };
    const oldest = await run((options) => records.findOne(timed, { ...options, ...first }));
    return { bytes: totalOf(indexed, others), oldest: oldest?.time?.getTime() ?? null };
  }

  return {
    deleteRecordsOf: (device, limit) => remove(ofDevice(device), limit),
    async deleteExpired(moment, limit) {
      const deleted = await remove(
        { where: { time: { $lt: new Date(moment) } }, hint: recordIndexes.time, sort: { time: 1 } },
        limit,
      );
      if (deleted > 0) return deleted;
      await removeOldVoids();
      await countNextSegment();
      return deleted;
    },
    deleteHeaviest: removeHeaviest,
    size,
  };
}

/** Devices whose records are looked up at a time. */
const payerBatchSize = 100;
