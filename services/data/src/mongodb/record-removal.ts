import type { MongoStore } from "@devmesh/store/mongodb";
import type { Filter, Sort } from "mongodb";
import type { DataStore, StoreSize } from "../data-store.ts";
import { type Collections, recordIndexes, type StoredDocument } from "./collections.ts";
import { asWriter, writeMs } from "./deadline.ts";
import type { IdRange, SearchSegments } from "./search-segments.ts";

type PortMethods = Pick<DataStore, "deleteRecordsOf" | "deleteExpired" | "deleteOldest" | "size">;

/**
 * How long a void stays, in milliseconds, whatever the retention: far longer than any insert can be under way that it is to
 * keep out.
 */
const voidStaysMs = 3_600_000;

interface Selected {
  readonly where: Filter<StoredDocument>;
  readonly hint: string;
  readonly sort: Sort;
}

/** Deleting records and telling what those that are left take up. */
export function createRecordRemoval(
  store: MongoStore,
  { records }: Collections,
  segments: SearchSegments,
): PortMethods {
  const listSegments = (range: IdRange) => segments.list(range, AbortSignal.timeout(writeMs));

  /**
   * Deletes the first of them: `limit`, or fewer if these weigh `enough`. 0 only when there was none: another process may have
   * been faster.
   */
  async function remove({ where, hint, sort }: Selected, limit: number, enough = Infinity): Promise<number> {
    for (;;) {
      const first = await asWriter(store, (options) =>
        records
          .find(where, { ...options, hint, batchSize: limit })
          .project<{ _id: number; weight: number }>({ weight: 1 })
          .sort(sort)
          .limit(limit)
          .toArray(),
      );
      if (first.length === 0) return 0;
      const found = leading(first, enough);
      const { deletedCount } = await asWriter(store, (options) =>
        records.deleteMany({ _id: { $in: found.map(({ _id }) => _id) } }, options),
      );
      if (deletedCount === 0) continue;
      // Of what two processes found at the same time, each has deleted a part, and tells as much of it.
      await lightenSegments(found, deletedCount / found.length);
      return deletedCount;
    }
  }

  /** Keeps what segments weigh true; a process that dies before leaves them too heavy, until they go as a whole. */
  async function lightenSegments(
    gone: readonly { _id: number; weight: number }[],
    share: number,
  ): Promise<void> {
    const ids = gone.map(({ _id }) => _id);
    const range = { from: Math.min(...ids), to: Math.max(...ids) };
    for (const segment of await listSegments(range)) {
      const weight = gone
        .filter(({ _id }) => _id >= segment._id && _id <= segment.to)
        .reduce((sum, record) => sum + record.weight, 0);
      if (weight > 0) await segments.lighten(segment, Math.round(weight * share));
    }
    const [first] = await asWriter(store, (options) =>
      records
        .find(isRecord, { ...options, hint: recordIndexes.id })
        .project<{ _id: number }>({ _id: 1 })
        .sort({ _id: 1 })
        .limit(1)
        .toArray(),
    );
    await segments.dropBefore(first?._id ?? range.to + 1);
  }

  async function removeOldVoids(): Promise<void> {
    const before = new Date(Date.now() - voidStaysMs);
    await asWriter(store, (options) =>
      records.deleteMany({ void: { $lt: before } }, { ...options, hint: recordIndexes.void }),
    );
  }

  async function size(): Promise<StoreSize> {
    const sealed = await listSegments({ from: 1, to: Number.MAX_SAFE_INTEGER });
    const [young] = await asWriter(store, (options) =>
      records
        .aggregate<{ weight: number }>(
          [
            { $match: { _id: { $gt: sealed.at(-1)?.to ?? 0 } } },
            { $group: { _id: null, weight: { $sum: "$weight" } } },
          ],
          { ...options, hint: recordIndexes.id },
        )
        .toArray(),
    );
    const [oldest] = await asWriter(store, (options) =>
      records
        .find({ time: { $gte: new Date(0) } }, { ...options, hint: recordIndexes.time })
        .project<{ time: Date }>({ time: 1 })
        .sort({ time: 1 })
        .limit(1)
        .toArray(),
    );
    return {
      bytes: sealed.reduce((sum, { weight }) => sum + weight, young?.weight ?? 0),
      oldest: oldest?.time.getTime() ?? null,
    };
  }

  return {
    deleteRecordsOf: (device, limit) =>
      remove({ where: { device }, hint: recordIndexes.device, sort: { device: 1, _id: 1 } }, limit),
    async deleteExpired(moment, limit) {
      const deleted = await remove(
        { where: { time: { $lt: new Date(moment) } }, hint: recordIndexes.time, sort: { time: 1 } },
        limit,
      );
      if (deleted === 0) await removeOldVoids();
      return deleted;
    },
    async deleteOldest(limit, aboveBytes) {
      // Weighed each time: other processes delete, too, and what is over the bound is to go only once.
      const excess = (await size()).bytes - aboveBytes;
      if (excess <= 0) return 0;
      return await remove({ where: isRecord, hint: recordIndexes.id, sort: { _id: 1 } }, limit, excess);
    },
    size,
  };
}

/** The first of the documents that together weigh `enough`; all if they weigh less. */
function leading<T extends { readonly weight: number }>(
  documents: readonly T[],
  enough: number,
): readonly T[] {
  let weight = 0;
  const end = documents.findIndex((document) => {
    weight += document.weight;
    return weight >= enough;
  });
  return end === -1 ? documents : documents.slice(0, end + 1);
}

const isRecord = { void: { $exists: false } };
