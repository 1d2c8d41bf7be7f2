import type { DatabaseSync } from "node:sqlite";
import { inTransaction } from "@devmesh/store/sqlite";
import type { AppendOutcome, DataMessage } from "../data-store.ts";
import { chooseHeaviestFirst, type Removal, type WeighedRecord } from "../heaviest-first.ts";
import { weightInSql, weightOf } from "../record-weight.ts";
import {
  blockInSql,
  blocksBetween,
  createSearchTable,
  readSegments,
  type Segment,
  searchTable,
  tailOf,
} from "./schema.ts";

/** How many records are in a segment, and how many at most without a search table. */
export interface SegmentBounds {
  /** Records that were added to a full segment. */
  readonly segmentRecords: number;
  /** Bytes of topics and payloads that were added to it. */
  readonly segmentBytes: number;
  /** Records, and a sixteenth of `segmentBytes`, that are added before they are indexed together. */
  readonly tailRecords: number;
}

/** The newest segment. Neither the search tables nor `stored_bytes` have its records yet. */
interface Tail {
  readonly segment: Segment;
  /** By device. */
  readonly weights: ReadonlyMap<string, number>;
}

/** When a segment is full. */
interface Fullness {
  readonly appended: number;
  readonly bytes: number;
}

/**
 * Adds records to segments and deletes them, each in one transaction, on the store's only connection for writing.
 * Throws what `node:sqlite` throws.
 */
export function createRecordWriting(db: DatabaseSync, bounds: SegmentBounds) {
  const { segmentRecords, segmentBytes, tailRecords } = bounds;
  const full: Fullness = { appended: segmentRecords, bytes: segmentBytes };
  const fullTail: Fullness = { appended: tailRecords, bytes: segmentBytes / 16 };
  const sql = prepareStatements(db);
  let tail = readTail(db);

  /** See `DataStore.append`. */
  function append(messages: readonly DataMessage[]): AppendOutcome {
    let stored = 0;
    let repeated = 0;
    let refused = 0;
    const ids: (number | null)[] = [];
    let segment = tail?.segment ?? null;
    let weights = new Map(tail?.weights);
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
        const weight = weightOf(deviceId, topic, payload.length);
        segment = grown(
          segment ?? newTail(id, timestamp),
          id,
          timestamp,
          topic.length + payload.length,
          weight,
        );
        weights.set(deviceId, (weights.get(deviceId) ?? 0) + weight);
        if (isFull(segment, fullTail)) {
          settle({ segment, weights });
          segment = null;
          weights = new Map();
        }
        lastId = id;
        ids.push(id);
        stored++;
      }
      if (stored === 0) return;
      if (segment !== null) save(segment);
      sql.setLastId.run(lastId);
    });
    tail = segment && { segment, weights };
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

  function newTail(firstId: number, timestamp: number): Segment {
    const number = Number(sql.nextSegment.get()?.number);
    sql.addSegment.run(number, firstId, firstId - 1, timestamp, timestamp);
    const counts = { records: 0, appended: 0, bytes: 0, given: 0, kept: 0 };
    const bounds = { first_id: firstId, last_id: firstId - 1, earliest: timestamp, latest: timestamp };
    return { number, ...bounds, ...counts, searchable: false };
  }

  /**
   * Indexes and weighs a tail and lists its topics, in the segment before it or, where that is full, as a segment.
   * Thousands of records in one statement cost the index half of what they cost one by one.
   */
  function settle({ segment: ended, weights }: Tail): void {
    const before = readSegments(db).findLast(({ number }) => number < ended.number);
    let segment: Segment = { ...ended, given: ended.kept, searchable: true };
    if (before?.searchable && !isFull(before, full)) {
      segment = joined(before, segment);
      sql.dropSegment.run(ended.number);
    } else createSearchTable(db, segment.number);
    db.prepare(`
      INSERT INTO ${searchTable(segment.number)} (rowid, topic, text)
      SELECT id, topic, iif(is_text = 1, CAST(payload AS TEXT), '') FROM records WHERE id BETWEEN ? AND ?
    `).run(ended.first_id, ended.last_id);
    sql.listTopics.run(ended.first_id, ended.last_id);
    save(segment);
    for (const [deviceId, weight] of weights) sql.addBytes.run(deviceId, weight);
  }

  function save(segment: Segment): void {
    const { number, last_id, records, appended, bytes, earliest, latest, given, kept } = segment;
    const searchable = segment.searchable ? 1 : 0;
    sql.saveSegment.run(last_id, records, appended, bytes, earliest, latest, given, kept, searchable, number);
  }

  /** Lists, for the topics whose newest record was deleted, the newest that is left. */
  function listAgain(deleted: readonly Record<string, unknown>[]): void {
    const ids = new Set(deleted.map(({ id }) => id));
    const oldest = sql.bounds.get()?.low;
    for (const topic of new Set(deleted.map((row) => String(row.topic)))) {
      const newest = sql.newestOf.get(topic)?.newest;
      if (!ids.has(newest)) continue;
      const left = oldest === null ? null : newestBefore(topic, Number(oldest), Number(newest));
      if (left === null) sql.dropTopic.run(topic);
      else sql.setNewest.run(left, topic);
    }
  }

  function newestBefore(topic: string, oldest: number, id: number): number | null {
    for (const { block } of blocksBetween(oldest, id, "desc")) {
      const row = sql.newestIn.get(block, topic);
      if (row !== undefined) return Number(row.id);
    }
    return null;
  }

  /** Records of a device after an id, in the order of their ids. */
  function recordsOf(deviceId: string, after: number, most: number): WeighedRecord[] {
    const found: WeighedRecord[] = [];
    const { low, high } = sql.bounds.get() ?? {};
    for (const range of blocksBetween(Math.max(Number(low), after + 1), Number(high), "asc")) {
      if (found.length === most) break;
      const rows = sql.recordsOf.all(range.block, deviceId, range.low, most - found.length);
      found.push(...rows.map(weighed));
    }
    return found;
  }

  /** Deletes the records, updates the counts of devices and segments, and drops empty segments. */
  function remove(records: readonly WeighedRecord[]): number {
    if (records.length === 0) return 0;
    listAgain(sql.deleteAll.all(JSON.stringify(records.map(({ id }) => id))));
    const weights = new Map<string, number>();
    for (const { deviceId, weight } of records) weights.set(deviceId, (weights.get(deviceId) ?? 0) + weight);
    for (const [deviceId, weight] of weights) sql.addBytes.run(deviceId, -weight);
    sql.forgetEmpty.run();
    for (const segment of readSegments(db)) {
      const gone = records.filter(({ id }) => id >= segment.first_id && id <= segment.last_id);
      if (gone.length === 0) continue;
      const left = segment.records - gone.length;
      const kept = segment.kept - gone.reduce((sum, { weight }) => sum + weight, 0);
      // A search table is as large as the text that was added to it, and can only be dropped as a whole.
      const searchable = segment.searchable && left > 0 && kept * mostlyGone >= segment.given;
      if (segment.searchable && !searchable) db.exec(`DROP TABLE ${searchTable(segment.number)}`);
      if (left > 0) sql.lighten.run(left, kept, searchable ? 1 : 0, segment.number);
      else sql.dropSegment.run(segment.number);
    }
    return records.length;
  }

  function chooseHeaviest(removal: Removal): WeighedRecord[] {
    // One more than can be chosen, so that no device that was left out is the heaviest.
    const devices = sql.heaviest
      .all(removal.limit + 1)
      .map((row) => ({ deviceId: String(row.device_id), bytes: Number(row.bytes) }));
    const ahead = new Map<string, WeighedRecord[]>();
    const readTo = new Map<string, number>();
    const oldestOf = (deviceId: string) => {
      let records = ahead.get(deviceId);
      if (records === undefined || records.length === 0) {
        records = recordsOf(deviceId, readTo.get(deviceId) ?? 0, oldestBatchSize);
        ahead.set(deviceId, records);
        readTo.set(deviceId, records.at(-1)?.id ?? Number.MAX_SAFE_INTEGER);
      }
      return records.shift() ?? null;
    };
    return chooseHeaviestFirst(devices, oldestOf, removal);
  }

  function removing(choose: () => readonly WeighedRecord[]): number {
    const removed = inTransaction(db, () => {
      if (tail !== null) settle(tail);
      return remove(choose());
    });
    tail = null;
    return removed;
  }

  return {
    append,
    /** Deletes the oldest records of a device and returns how many. */
    removeOf: (deviceId: string, limit: number) => removing(() => recordsOf(deviceId, 0, limit)),
    /** Deletes records from before `moment`, Unix milliseconds, and returns how many. */
    removeBefore: (moment: number, limit: number) =>
      removing(() => sql.recordsBefore.all(moment, limit).map(weighed)),
    /** Deletes the oldest records of the devices that weigh most and returns how many. */
    removeHeaviest: (removal: Removal) => removing(() => chooseHeaviest(removal)),
  };
}

/** A segment that has less than this fraction of what was added to it loses its search table. */
const mostlyGone = 4;
/** Records of a device that are looked up at a time. */
const oldestBatchSize = 20;

function weighed(row: Record<string, unknown>): WeighedRecord {
  return { id: Number(row.id), deviceId: String(row.device_id), weight: Number(row.weight) };
}

function prepareStatements(db: DatabaseSync) {
  return {
    lastId: db.prepare("SELECT id FROM last_record"),
    setLastId: db.prepare("UPDATE last_record SET id = ?"),
    insert: db.prepare(`
      INSERT INTO records (id, timestamp, device_id, topic, is_text, stream, sequence, payload) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (stream, sequence, timestamp) WHERE sequence IS NOT NULL DO NOTHING`),
    addStream: db.prepare("INSERT INTO streams (created) VALUES (?) ON CONFLICT DO NOTHING"),
    streamId: db.prepare("SELECT id FROM streams WHERE created = ?"),
    nextSegment: db.prepare("SELECT ifnull(max(number), 0) + 1 AS number FROM segments"),
    addSegment: db.prepare("INSERT INTO segments VALUES (?, ?, ?, 0, 0, 0, ?, ?, 0, 0, 0)"),
    saveSegment: db.prepare(`
      UPDATE segments
      SET last_id = ?, records = ?, appended = ?, bytes = ?, earliest = ?, latest = ?, given = ?, kept = ?, searchable = ?
      WHERE number = ?`),
    lighten: db.prepare("UPDATE segments SET records = ?, kept = ?, searchable = ? WHERE number = ?"),
    dropSegment: db.prepare("DELETE FROM segments WHERE number = ?"),
    refusal: db.prepare("SELECT admitted_at FROM refused_devices WHERE device_id = ?"),
    addBytes: db.prepare(`
      INSERT INTO stored_bytes VALUES (?, ?) ON CONFLICT (device_id) DO UPDATE SET bytes = bytes + excluded.bytes`),
    forgetEmpty: db.prepare("DELETE FROM stored_bytes WHERE bytes <= 0"),
    heaviest: db.prepare("SELECT device_id, bytes FROM stored_bytes ORDER BY bytes DESC LIMIT ?"),
    recordsOf: db.prepare(`
      SELECT id, device_id, ${weightInSql} AS weight FROM records INDEXED BY records_by_device
      WHERE ${blockInSql("id")} = ? AND device_id = ? AND id >= ? ORDER BY id LIMIT ?`),
    recordsBefore: db.prepare(`
      SELECT id, device_id, ${weightInSql} AS weight FROM records WHERE timestamp < ? ORDER BY timestamp LIMIT ?`),
    deleteAll: db.prepare(
      "DELETE FROM records WHERE id IN (SELECT value FROM json_each(?)) RETURNING id, topic",
    ),
    bounds: db.prepare("SELECT (SELECT min(id) FROM records) AS low, (SELECT max(id) FROM records) AS high"),
    listTopics: db.prepare(`
      INSERT INTO topics SELECT topic, max(id) FROM records WHERE id BETWEEN ? AND ? GROUP BY topic
      ON CONFLICT (topic) DO UPDATE SET newest = excluded.newest`),
    newestOf: db.prepare("SELECT newest FROM topics WHERE topic = ?"),
    newestIn: db.prepare(`
      SELECT id FROM records INDEXED BY records_by_topic
      WHERE ${blockInSql("id")} = ? AND topic = ? ORDER BY id DESC LIMIT 1`),
    setNewest: db.prepare("UPDATE topics SET newest = ? WHERE topic = ?"),
    dropTopic: db.prepare("DELETE FROM topics WHERE topic = ?"),
  };
}

/** The newest segment, unless it has been settled. */
function readTail(db: DatabaseSync): Tail | null {
  const segment = tailOf(readSegments(db));
  if (segment === null) return null;
  const rows = db
    .prepare(`SELECT device_id, sum(${weightInSql}) AS weight FROM records WHERE id >= ? GROUP BY device_id`)
    .all(segment.first_id);
  return { segment, weights: new Map(rows.map((row) => [String(row.device_id), Number(row.weight)])) };
}

function isFull({ appended, bytes }: Segment, full: Fullness): boolean {
  return appended >= full.appended || bytes >= full.bytes;
}

/** A segment with what follows it. */
function joined(segment: Segment, next: Segment): Segment {
  return {
    ...segment,
    last_id: next.last_id,
    records: segment.records + next.records,
    appended: segment.appended + next.appended,
    bytes: segment.bytes + next.bytes,
    earliest: Math.min(segment.earliest, next.earliest),
    latest: Math.max(segment.latest, next.latest),
    given: segment.given + next.given,
    kept: segment.kept + next.kept,
  };
}

function grown(segment: Segment, id: number, timestamp: number, bytes: number, weight: number): Segment {
  return {
    ...segment,
    last_id: id,
    records: segment.records + 1,
    appended: segment.appended + 1,
    bytes: segment.bytes + bytes,
    earliest: Math.min(segment.earliest, timestamp),
    latest: Math.max(segment.latest, timestamp),
    kept: segment.kept + weight,
  };
}
