import type { DatabaseSync } from "node:sqlite";
import type { Migration } from "@devmesh/store/sqlite";

/**
 * The store's schema. A run of record ids is a segment with one search table (`search_<number>`), so that
 * search, time bounds and counts go segment by segment, and an old search table is dropped whole.
 */
export const migrations: readonly Migration[] = [
  `
  CREATE TABLE records (
    id INTEGER PRIMARY KEY,
    timestamp INTEGER NOT NULL,
    device_id TEXT NOT NULL,
    topic TEXT NOT NULL,
    is_text INTEGER NOT NULL,
    stream INTEGER REFERENCES streams (id),
    sequence INTEGER,
    payload BLOB NOT NULL
  ) STRICT;
  CREATE INDEX records_by_device ON records (device_id, id);
  CREATE INDEX records_by_topic ON records (topic, id);
  CREATE INDEX records_by_time ON records (timestamp);
  -- A broker that lost the tail of its stream reuses the sequences; the time of the message differs (ADR 6).
  CREATE UNIQUE INDEX records_by_delivery ON records (stream, sequence, timestamp) WHERE sequence IS NOT NULL;

  CREATE TABLE streams (id INTEGER PRIMARY KEY, created TEXT NOT NULL UNIQUE) STRICT;

  CREATE TABLE last_record (only INTEGER PRIMARY KEY CHECK (only = 1), id INTEGER NOT NULL) STRICT;
  INSERT INTO last_record VALUES (1, 0);

  CREATE TABLE segments (
    number INTEGER PRIMARY KEY,
    first_id INTEGER NOT NULL,
    last_id INTEGER NOT NULL,
    records INTEGER NOT NULL,
    appended INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    earliest INTEGER NOT NULL,
    latest INTEGER NOT NULL,
    given INTEGER NOT NULL DEFAULT 0,
    kept INTEGER NOT NULL DEFAULT 0,
    searchable INTEGER NOT NULL DEFAULT 1
  ) STRICT;

  CREATE TABLE stored_bytes (device_id TEXT PRIMARY KEY, bytes INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  CREATE INDEX stored_bytes_by_bytes ON stored_bytes (bytes);

  CREATE TABLE refused_devices (
    device_id TEXT PRIMARY KEY,
    purged INTEGER NOT NULL,
    admitted_at INTEGER
  ) STRICT, WITHOUT ROWID;
  `,
  `
  CREATE TABLE series (
    id INTEGER PRIMARY KEY,
    device_id TEXT NOT NULL,
    topic TEXT NOT NULL,
    pointer TEXT NOT NULL,
    first_at INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    last REAL NOT NULL,
    buckets INTEGER NOT NULL,
    UNIQUE (topic, pointer)
  ) STRICT;
  CREATE INDEX series_by_device ON series (device_id);

  CREATE TABLE buckets (
    series INTEGER NOT NULL,
    -- In milliseconds.
    width INTEGER NOT NULL,
    start INTEGER NOT NULL,
    count INTEGER NOT NULL,
    min REAL NOT NULL,
    max REAL NOT NULL,
    sum REAL NOT NULL,
    first REAL NOT NULL,
    first_at INTEGER NOT NULL,
    last REAL NOT NULL,
    last_at INTEGER NOT NULL,
    PRIMARY KEY (series, width, start)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE series_left_out (device_id TEXT PRIMARY KEY, numbers INTEGER NOT NULL) STRICT, WITHOUT ROWID;

  -- The last record that is in buckets, and how many buckets there are.
  CREATE TABLE rolled_up (only INTEGER PRIMARY KEY CHECK (only = 1), id INTEGER NOT NULL, buckets INTEGER NOT NULL) STRICT;
  INSERT INTO rolled_up VALUES (1, 0, 0);
  `,
  // By blocks of ids (`blockOf`), so that a batch of many devices writes few pages.
  `
  DROP INDEX records_by_device;
  DROP INDEX records_by_topic;
  CREATE INDEX records_by_device ON records (id >> 15, device_id, id);
  CREATE INDEX records_by_topic ON records (id >> 15, topic, id);

  -- The newest record of each topic, without those of the newest segment.
  CREATE TABLE topics (topic TEXT PRIMARY KEY, newest INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  INSERT INTO topics SELECT topic, max(id) FROM records GROUP BY topic;
  `,
];

/** Record ids of one block in the indexes by device and by topic. */
const idsOfBlock = 2 ** 15;

/** The block of a record id in SQL, as the indexes have it. */
export function blockInSql(id: string): string {
  return `${id} >> 15`;
}

/** The block of a record id. */
function blockOf(id: number): number {
  return Math.floor(id / idsOfBlock);
}

/** Ids that lie in one block, both inclusive. */
export interface BlockRange {
  readonly block: number;
  readonly low: number;
  readonly high: number;
}

/** The ids from `low` to `high`, both inclusive, block by block in that order. */
export function* blocksBetween(low: number, high: number, order: "asc" | "desc"): Generator<BlockRange> {
  const [first, last] = [blockOf(low), blockOf(high)];
  for (let nth = 0; nth <= last - first; nth++) {
    const block = order === "asc" ? first + nth : last - nth;
    const begin = block * idsOfBlock;
    yield { block, low: Math.max(low, begin), high: Math.min(high, begin + idsOfBlock - 1) };
  }
}

/**
 * A cache for the ends of all indexes, which each batch touches (64 MB), and fewer checkpoints. The wait for a lock is
 * short, since it blocks the process and the batch is retried.
 */
export function tuneForAppending(db: DatabaseSync): void {
  db.exec("PRAGMA cache_size = -65536; PRAGMA wal_autocheckpoint = 8192; PRAGMA busy_timeout = 250;");
}

/** A run of record ids with one search table, unless it is the newest. */
export interface Segment {
  readonly number: number;
  readonly first_id: number;
  /** Inclusive. */
  readonly last_id: number;
  /** Records in it now. */
  readonly records: number;
  /** Records that were added to it. */
  readonly appended: number;
  /** Bytes of topics and payloads that were added to it. */
  readonly bytes: number;
  /** Bounds of its records' timestamps, both inclusive. */
  readonly earliest: number;
  readonly latest: number;
  /** The weight of all records that were added to it, 0 before it is indexed; and of those in it now. */
  readonly given: number;
  readonly kept: number;
  /** Whether it has a search table: not yet as the newest, and no more once it has lost most of its records. */
  readonly searchable: boolean;
}

/** All segments, oldest first. */
export function readSegments(db: DatabaseSync): Segment[] {
  return db
    .prepare("SELECT * FROM segments ORDER BY number")
    .all()
    .map((row) => ({ ...(row as unknown as Segment), searchable: row.searchable === 1 }));
}

/** The newest segment, unless it has been settled: its records are in no search table and no list. */
export function tailOf(segments: readonly Segment[]): Segment | null {
  const last = segments.at(-1);
  return last === undefined || last.given > 0 ? null : last;
}

export function searchTable(segment: number): string {
  return `search_${segment}`;
}

/**
 * Creates the search table of a segment: case-sensitive trigrams of topic and text without positions (`detail=none`),
 * a third of the size with them. What it finds is verified.
 */
export function createSearchTable(db: DatabaseSync, segment: number): void {
  db.exec(`CREATE VIRTUAL TABLE ${searchTable(segment)} USING fts5(
    topic, text, content='', columnsize=0, detail=none, tokenize='trigram case_sensitive 1'
  )`);
}
