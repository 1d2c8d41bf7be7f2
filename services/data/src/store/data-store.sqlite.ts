import type { DatabaseSync } from "node:sqlite";
import { setImmediate as nextTurn } from "node:timers/promises";
import { openSqlite } from "@devmesh/store/sqlite";
import { isSqliteFailure, StoreUnavailable } from "@devmesh/store/store-unavailable";
import type { DataStore, RecordPage, StoreSize } from "./data-store.ts";
import { createFairQueue } from "./fair-queue.ts";
import { cursorOf, type Position, startOf } from "./position.ts";
import type { RollUpOutcome } from "./series-store.ts";
import { FreshRecords } from "./sqlite/fresh-records.ts";
import { followedOf } from "./sqlite/record-following.ts";
import { openRecordReader, type RecordReader } from "./sqlite/record-reader.ts";
import type { ScanResult } from "./sqlite/record-scan.ts";
import { createRecordWriting, type SegmentBounds } from "./sqlite/record-writing.ts";
import { migrations, tuneForAppending } from "./sqlite/schema.ts";
import { bytesOfBucket, createSeriesWriting } from "./sqlite/series-writing.ts";
import { topicsAfter, topicsOf } from "./topic-filter.ts";

/** The layout of a {@link SqliteDataStore}. */
export interface SqliteDataStoreOptions extends Partial<SegmentBounds> {
  /** The most threads that read; one caller gets all but one of them. */
  readonly readers?: number;
  /** How long one scan keeps a thread before another query gets it, in milliseconds; at least one segment's time. */
  readonly sliceMs?: number;
}

/** A {@link DataStore} in one SQLite file; its process alone may write it. */
export interface SqliteDataStore extends DataStore {
  readonly reader: RecordReader;
}

const defaults: Required<SqliteDataStoreOptions> = {
  segmentRecords: 65_536,
  segmentBytes: 32 * 1024 * 1024,
  tailRecords: 4_096,
  readers: 3,
  sliceMs: 100,
};

/** Segments are small parts of `maxBytes`, since a search table is dropped as a whole. */
export function segmentBytesFor(maxBytes: number): number {
  return Math.min(defaults.segmentBytes, Math.max(256 * 1024, Math.floor(maxBytes / 64)));
}

/**
 * Opens or creates the store in the file `path`. A batch is one commit, and one sync.
 * @throws Error with one clear sentence when another process holds it or the path cannot be used
 */
export function openSqliteDataStore(path: string, options: SqliteDataStoreOptions = {}): SqliteDataStore {
  const { readers, sliceMs, ...segmentBounds } = { ...defaults, ...options };
  if (path === ":memory:")
    throw new Error("STORE_URL of the data service must name a file: several threads open it");
  const store = openSqlite(path, { migrations });
  const { db } = store;
  tuneForAppending(db);
  const sql = prepareStatements(db);
  const reader = openRecordReader(path);
  const queue = createFairQueue({ limit: readers, perCaller: Math.max(1, readers - 1) });
  const closing = new AbortController();
  const records = createRecordWriting(db, segmentBounds);
  const fresh = new FreshRecords();
  const series = createSeriesWriting(db);
  const storePart = written(series.store);
  const expireSome = written(series.expire);
  const shrinkSome = written(series.shrink);
  const removeSeriesOf = written(series.removeOf);
  let rolling: Promise<RollUpOutcome> | null = null;

  async function rollUp(): Promise<RollUpOutcome> {
    const part = await queue.run("roll-up", closing.signal, () => reader.run("readUnrolled"));
    await storePart(part);
    return part.atEnd ? "done" : "more";
  }

  /** What was read of a series by a part under way is true until the part is stored. */
  async function untilNoneRolls(): Promise<void> {
    while (rolling !== null) await rolling.catch(() => undefined);
  }

  function size(): StoreSize {
    const row = sql.size.get();
    const oldest = row?.oldest ?? null;
    return { bytes: Number(row?.bytes), oldest: oldest === null ? null : Number(oldest) };
  }

  return {
    reader,
    append: written((messages) => {
      const outcome = records.append(messages);
      fresh.add(messages, outcome.ids);
      return outcome;
    }),
    async readPage(selection, page, signal): Promise<RecordPage> {
      const items: RecordPage["items"] = [];
      let position: Position | null = startOf(page);
      if (page.limit === 0) return { next: null, items };
      let bytes = 0;
      const end = performance.now() + page.searchMs;
      while (position !== null) {
        const bounds = {
          limit: page.limit === null ? null : page.limit - items.length,
          maxBytes: page.maxBytes - bytes,
          started: items.length > 0,
          sliceMs,
        };
        const from = position;
        const found: ScanResult = await queue.run(page.caller, signal, () =>
          reader.run("scan", selection, from, bounds),
        );
        items.push(...found.items);
        bytes += found.bytes;
        position = found.position;
        if (found.full || items.length === page.limit || performance.now() >= end) break;
      }
      return { next: position === null ? null : cursorOf(position), items };
    },
    follow: async ({ caller, ...request }, signal) =>
      fresh.follow(request) ??
      followedOf(await queue.run(caller, signal, () => reader.run("follow", request))),
    async readLatest(deviceId, { caller, limit, after, maxBytes }, signal) {
      const range = topicsAfter(deviceId, after);
      return await queue.run(caller, signal, () => reader.run("readLatest", range, { limit, maxBytes }));
    },
    countTopics: (deviceId, { caller, most }, signal) =>
      queue.run(caller, signal, () => reader.run("countTopics", topicsOf(deviceId), most)),
    rollUp() {
      rolling ??= rollUp().finally(() => {
        rolling = null;
      });
      return rolling;
    },
    readSpans: ({ caller, ...query }, signal) =>
      queue.run(caller, signal, () => reader.run("readSpans", query)),
    listSeries: (deviceId, caller, signal) =>
      queue.run(caller, signal, () => reader.run("listSeries", deviceId)),
    async deleteSeriesOf(deviceId, limit) {
      await untilNoneRolls();
      return await removeSeriesOf(deviceId, limit);
    },
    async expireBuckets(before, signal) {
      for (let at: number | null = 0; at !== null; ) {
        await untilNoneRolls();
        at = await expireSome(at, before);
        await nextTurn();
        signal.throwIfAborted();
      }
    },
    async shrinkSeries(maxBytes, signal) {
      while (await shrinkSome(maxBytes)) {
        signal.throwIfAborted();
        await nextTurn();
      }
    },
    refuseDevice: written((deviceId) => {
      sql.refuse.run(deviceId);
      fresh.forget(deviceId);
    }),
    deleteRecordsOf: written((deviceId, limit) => records.removeOf(deviceId, limit)),
    finishPurge: written((deviceId) => void sql.finishPurge.run(deviceId)),
    async unfinishedPurges() {
      return sql.unfinishedPurges.all().map((row) => String(row.device_id));
    },
    admitDevice: written((deviceId, moment) => void sql.admit.run(moment, deviceId)),
    forgetAdmissions: written((moment) => void sql.forgetAdmissions.run(moment)),
    deleteExpired: written((moment, limit) => records.removeBefore(moment, limit)),
    deleteHeaviest: written((limit, aboveBytes) => {
      // One segment at a time: its search table, which the weights leave out, may free more than they say.
      const enough = Math.min(size().bytes - aboveBytes, segmentBounds.segmentBytes);
      return enough > 0 ? records.removeHeaviest({ limit, enough }) : 0;
    }),
    async lastSequence(streamCreated) {
      const last = sql.lastSequence.get(streamCreated)?.sequence ?? null;
      return last === null ? null : Number(last);
    },
    size: async () => size(),
    async ping() {
      // A file is always there; `checkWritable` finds a full disk.
    },
    checkWritable: written(() => void sql.touch.run()),
    async close() {
      closing.abort(new StoreUnavailable("the store is closed"));
      queue.close();
      await reader.close();
      store.close();
    },
  };
}

/** A method made of statements that write; turns a failure of SQLite itself into {@link StoreUnavailable}. */
function written<A extends unknown[], R>(work: (...given: A) => R): (...given: A) => Promise<R> {
  return async (...given) => {
    try {
      return work(...given);
    } catch (cause) {
      if (!isSqliteFailure(cause)) throw cause;
      throw new StoreUnavailable(`the store cannot be written: ${cause.errstr}`, { cause });
    }
  };
}

/** Tables and indexes of numbers, each with a page when it is empty: their bound is another one. */
const seriesTables = 6;

function prepareStatements(db: DatabaseSync) {
  return {
    touch: db.prepare("UPDATE last_record SET id = id"),
    refuse: db.prepare(`
      INSERT INTO refused_devices (device_id, purged, admitted_at) VALUES (?, 0, NULL)
      ON CONFLICT (device_id) DO UPDATE SET purged = 0, admitted_at = NULL`),
    finishPurge: db.prepare("UPDATE refused_devices SET purged = 1 WHERE device_id = ?"),
    unfinishedPurges: db.prepare("SELECT device_id FROM refused_devices WHERE purged = 0"),
    admit: db.prepare(
      "UPDATE refused_devices SET admitted_at = ? WHERE device_id = ? AND admitted_at IS NULL",
    ),
    forgetAdmissions: db.prepare("DELETE FROM refused_devices WHERE purged = 1 AND admitted_at < ?"),
    lastSequence: db.prepare(`
      SELECT max(sequence) AS sequence FROM records
      WHERE stream = (SELECT id FROM streams WHERE created = ?) AND sequence IS NOT NULL`),
    size: db.prepare(`
      SELECT (page_count - freelist_count - ${seriesTables}) * page_size
          - (SELECT buckets FROM rolled_up) * ${bytesOfBucket} AS bytes,
        (SELECT min(timestamp) FROM records) AS oldest
      FROM pragma_page_count, pragma_freelist_count, pragma_page_size`),
  };
}
