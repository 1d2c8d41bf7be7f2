import type { DatabaseSync } from "node:sqlite";
import { inTransaction, openSqlite } from "@devmesh/store/sqlite";
import { StoreUnavailable } from "@devmesh/store/store-unavailable";
import type { AppendOutcome, DataMessage, DataStore, RecordPage, StoreSize } from "./data-store.ts";
import { cursorOf, type Position, startOf } from "./position.ts";
import { openRecordReader, type RecordReader } from "./sqlite/record-reader.ts";
import {
  createSearchTable,
  migrations,
  readSegments,
  type Segment,
  searchTable,
  tuneForAppending,
} from "./sqlite/schema.ts";

/** How a {@link SqliteDataStore} is laid out. */
export interface SqliteDataStoreOptions {
  /** A segment is closed when it has been given this many records. */
  readonly segmentRecords?: number;
  /** A segment is closed when it has been given this many bytes of topics and payloads. */
  readonly segmentBytes?: number;
  /** Threads that read. */
  readonly readers?: number;
}

/** A {@link DataStore} in one SQLite file; its process alone may write it. */
export interface SqliteDataStore extends DataStore {
  readonly reader: RecordReader;
}

const defaults: Required<SqliteDataStoreOptions> = {
  segmentRecords: 65_536,
  segmentBytes: 32 * 1024 * 1024,
  readers: 2,
};

/** The size of a segment that lets a store of at most `maxBytes` give up its oldest records in small parts. */
export function segmentBytesFor(maxBytes: number): number {
  return Math.min(defaults.segmentBytes, Math.max(256 * 1024, Math.floor(maxBytes / 64)));
}

/** How long one scan keeps a reading thread before another query gets its turn, in milliseconds. */
const sliceMs = 100;

/**
 * Opens the store in the file `path`, making it if need be. What the broker still holds until it is acknowledged needs no sync
 * of each commit (`durability: normal`).
 * @throws Error with one clear sentence when another process holds it or the path cannot be used.
 */
export function openSqliteDataStore(path: string, options: SqliteDataStoreOptions = {}): SqliteDataStore {
  const { segmentRecords, segmentBytes, readers } = { ...defaults, ...options };
  if (path === ":memory:")
    throw new Error("STORE_URL of the data service must name a file: readers open it, too");
  const store = openSqlite(path, { migrations, durability: "normal" });
  const { db } = store;
  tuneForAppending(db);
  const sql = prepareStatements(db);
  const reader = openRecordReader(path, readers);
  let open = openSegment(db, segmentRecords, segmentBytes);
  let insertText = open === null ? null : prepareSearchInsert(db, open.number);

  function append(messages: readonly DataMessage[]): AppendOutcome {
    let stored = 0;
    let repeated = 0;
    let refused = 0;
    const ids: (number | null)[] = [];
    let segment = open;
    let insert = insertText;
    const streams = new Map<string, number>();
    const admissions = new Map<string, number | null>();

    inTransaction(db, () => {
      let lastId = Number(sql.lastId.get()?.id);
      for (const message of messages) {
        if (!isAdmitted(message, admissions)) {
          refused++;
          ids.push(null);
          continue;
        }
        const id = lastId + 1;
        const { delivery, timestamp, deviceId, topic, payload } = message;
        const isText = message.encoding === "text" ? 1 : 0;
        const stream = delivery === null ? null : streamId(delivery.streamCreated, streams);
        const sequence = delivery?.sequence ?? null;
        const { changes } = sql.insert.run(id, timestamp, deviceId, topic, isText, stream, sequence, payload);
        if (changes === 0) {
          repeated++;
          ids.push(null);
          continue;
        }
        if (segment === null || insert === null || isFull(segment, segmentRecords, segmentBytes)) {
          if (segment !== null) save(segment);
          segment = newSegment(id, timestamp);
          insert = prepareSearchInsert(db, segment.number);
        }
        insert.run(id, topic, isText === 1 ? payload : empty);
        segment = grown(segment, id, timestamp, topic.length + payload.length);
        lastId = id;
        ids.push(id);
        stored++;
      }
      if (stored === 0) return;
      if (segment !== null) save(segment);
      sql.setLastId.run(lastId);
    });
    open = segment;
    insertText = insert;
    return { stored, repeated, refused, ids };
  }

  function isAdmitted({ deviceId, timestamp }: DataMessage, known: Map<string, number | null>): boolean {
    let from = known.get(deviceId);
    if (from === undefined) {
      const row = sql.refusal.get(deviceId);
      if (row === undefined) from = Number.NEGATIVE_INFINITY;
      else from = row.admitted_at === null ? null : Number(row.admitted_at);
      known.set(deviceId, from);
    }
    return from !== null && timestamp > from;
  }

  function streamId(created: string, known: Map<string, number>): number {
    let id = known.get(created);
    if (id === undefined) {
      sql.addStream.run(created);
      id = Number(sql.streamId.get(created)?.id);
      known.set(created, id);
    }
    return id;
  }

  function newSegment(firstId: number, timestamp: number): Segment {
    const number = Number(sql.nextSegment.get()?.number);
    createSearchTable(db, number);
    const none = {
      last_id: firstId - 1,
      records: 0,
      appended: 0,
      bytes: 0,
      earliest: timestamp,
      latest: timestamp,
    };
    const segment = { number, first_id: firstId, ...none };
    sql.addSegment.run(number, firstId, firstId - 1, 0, 0, 0, timestamp, timestamp);
    return segment;
  }

  function save({ number, last_id, records, appended, bytes, earliest, latest }: Segment): void {
    sql.saveSegment.run(last_id, records, appended, bytes, earliest, latest, number);
  }

  /** Keeps the counts of segments true after records went, and drops the segments that hold none any more. */
  function remove(
    statement: "deleteOf" | "deleteBefore" | "deleteFirst",
    ...parameters: (string | number)[]
  ): number {
    return inTransaction(db, () => {
      const ids = sql[statement].all(...parameters).map((row) => Number(row.id));
      if (ids.length === 0) return 0;
      for (const segment of readSegments(db)) {
        const gone = ids.filter((id) => id >= segment.first_id && id <= segment.last_id).length;
        if (gone === 0) continue;
        const left = segment.records - gone;
        if (left > 0) {
          sql.setRecords.run(left, segment.number);
          continue;
        }
        db.exec(`DROP TABLE ${searchTable(segment.number)}`);
        sql.dropSegment.run(segment.number);
      }
      return ids.length;
    });
  }

  function removeAndReopen(...call: Parameters<typeof remove>): number {
    try {
      return translating(() => remove(...call));
    } finally {
      const known = open?.number;
      open = openSegment(db, segmentRecords, segmentBytes);
      if (open?.number !== known) insertText = open === null ? null : prepareSearchInsert(db, open.number);
    }
  }

  function size(): StoreSize {
    const row = sql.size.get();
    const oldest = row?.oldest ?? null;
    return { bytes: Number(row?.bytes), oldest: oldest === null ? null : Number(oldest) };
  }

  return {
    reader,
    async append(messages) {
      return translating(() => append(messages));
    },
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
        const found = await reader.scan({ selection, position, bounds }, signal);
        items.push(...found.items);
        bytes += found.bytes;
        position = found.position;
        if (found.full || items.length === page.limit || performance.now() >= end) break;
      }
      return { next: position === null ? null : cursorOf(position), items };
    },
    async refuseDevice(deviceId) {
      translating(() => sql.refuse.run(deviceId));
    },
    async deleteRecordsOf(deviceId, limit) {
      return removeAndReopen("deleteOf", deviceId, limit);
    },
    async finishPurge(deviceId) {
      translating(() => sql.finishPurge.run(deviceId));
    },
    async unfinishedPurges() {
      return sql.unfinishedPurges.all().map((row) => String(row.device_id));
    },
    async admitDevice(deviceId, moment) {
      translating(() => sql.admit.run(moment, deviceId));
    },
    async forgetAdmissions(moment) {
      translating(() => sql.forgetAdmissions.run(moment));
    },
    async deleteExpired(moment, limit) {
      return removeAndReopen("deleteBefore", moment, limit);
    },
    async deleteOldest(limit, aboveBytes) {
      const excess = size().bytes - aboveBytes;
      return excess > 0 ? removeAndReopen("deleteFirst", limit, excess) : 0;
    },
    size: async () => size(),
    async ping() {
      // A file does not go away by itself; that it takes nothing shows when something is stored.
    },
    async syncToDisk() {
      translating(() => store.db.exec("PRAGMA wal_checkpoint(PASSIVE)"));
    },
    async checkWritable() {
      translating(() => sql.touch.run());
    },
    async close() {
      await reader.close();
      store.close();
    },
  };
}

const empty = new Uint8Array();

/** SQLITE_TOOBIG, _CONSTRAINT, _MISMATCH and _RANGE: what was to be written is to blame. Everything else is the store's fault. */
const faultsOfInput = new Set([18, 19, 20, 25]);

/** Runs a statement; turns a failure of SQLite itself into {@link StoreUnavailable}. */
function translating<T>(work: () => T): T {
  try {
    return work();
  } catch (cause) {
    if (!isSqliteError(cause) || faultsOfInput.has(cause.errcode & 0xff)) throw cause;
    throw new StoreUnavailable(`the store cannot be written: ${cause.errstr}`, { cause });
  }
}

/** What `node:sqlite` throws: `errcode` is SQLite's extended result code, `errstr` its meaning in words. */
function isSqliteError(error: unknown): error is { errcode: number; errstr: string } {
  return (
    typeof error === "object" &&
    error !== null &&
    "errcode" in error &&
    "errstr" in error &&
    typeof error.errcode === "number"
  );
}

function prepareStatements(db: DatabaseSync) {
  return {
    lastId: db.prepare("SELECT id FROM last_record"),
    touch: db.prepare("UPDATE last_record SET id = id"),
    setLastId: db.prepare("UPDATE last_record SET id = ?"),
    insert: db.prepare(`
      INSERT INTO records (id, timestamp, device_id, topic, is_text, stream, sequence, payload) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (stream, sequence) WHERE sequence IS NOT NULL DO NOTHING`),
    addStream: db.prepare("INSERT INTO streams (created) VALUES (?) ON CONFLICT DO NOTHING"),
    streamId: db.prepare("SELECT id FROM streams WHERE created = ?"),
    nextSegment: db.prepare("SELECT ifnull(max(number), 0) + 1 AS number FROM segments"),
    addSegment: db.prepare("INSERT INTO segments VALUES (?, ?, ?, ?, ?, ?, ?, ?)"),
    saveSegment: db.prepare(
      "UPDATE segments SET last_id = ?, records = ?, appended = ?, bytes = ?, earliest = ?, latest = ? WHERE number = ?",
    ),
    setRecords: db.prepare("UPDATE segments SET records = ? WHERE number = ?"),
    dropSegment: db.prepare("DELETE FROM segments WHERE number = ?"),
    refusal: db.prepare("SELECT admitted_at FROM refused_devices WHERE device_id = ?"),
    refuse: db.prepare(`
      INSERT INTO refused_devices (device_id, purged, admitted_at) VALUES (?, 0, NULL)
      ON CONFLICT (device_id) DO UPDATE SET purged = 0, admitted_at = NULL`),
    finishPurge: db.prepare("UPDATE refused_devices SET purged = 1 WHERE device_id = ?"),
    unfinishedPurges: db.prepare("SELECT device_id FROM refused_devices WHERE purged = 0"),
    admit: db.prepare(
      "UPDATE refused_devices SET admitted_at = ? WHERE device_id = ? AND admitted_at IS NULL",
    ),
    forgetAdmissions: db.prepare("DELETE FROM refused_devices WHERE purged = 1 AND admitted_at < ?"),
    deleteOf: db.prepare(
      "DELETE FROM records WHERE id IN (SELECT id FROM records WHERE device_id = ? ORDER BY id LIMIT ?) RETURNING id",
    ),
    deleteBefore: db.prepare(
      "DELETE FROM records WHERE id IN (SELECT id FROM records WHERE timestamp < ? ORDER BY timestamp LIMIT ?) RETURNING id",
    ),
    // As many as weigh what is to go: a fixed number of large ones would empty a small store.
    deleteFirst: db.prepare(`
      DELETE FROM records WHERE id IN (
        SELECT id FROM (
          SELECT id, sum(weight) OVER (ORDER BY id) - weight AS before
          FROM (SELECT id, length(payload) + length(topic) AS weight FROM records ORDER BY id LIMIT ?)
        ) WHERE before < ?
      ) RETURNING id`),
    size: db.prepare(`
      SELECT (page_count - freelist_count) * page_size AS bytes, (SELECT min(timestamp) FROM records) AS oldest
      FROM pragma_page_count, pragma_freelist_count, pragma_page_size`),
  };
}

function prepareSearchInsert(db: DatabaseSync, segment: number) {
  return db.prepare(
    `INSERT INTO ${searchTable(segment)} (rowid, topic, text) VALUES (?, ?, CAST(? AS TEXT))`,
  );
}

/** The newest segment, if it takes more records. */
function openSegment(db: DatabaseSync, maxRecords: number, maxBytes: number): Segment | null {
  const newest = readSegments(db).at(-1);
  return newest === undefined || isFull(newest, maxRecords, maxBytes) ? null : newest;
}

function isFull({ appended, bytes }: Segment, maxRecords: number, maxBytes: number): boolean {
  return appended >= maxRecords || bytes >= maxBytes;
}

function grown(segment: Segment, id: number, timestamp: number, bytes: number): Segment {
  return {
    ...segment,
    last_id: id,
    records: segment.records + 1,
    appended: segment.appended + 1,
    bytes: segment.bytes + bytes,
    earliest: Math.min(segment.earliest, timestamp),
    latest: Math.max(segment.latest, timestamp),
  };
}
