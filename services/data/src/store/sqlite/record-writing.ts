import type { DatabaseSync } from "node:sqlite";
import { inTransaction } from "@devmesh/store/sqlite";
import { chooseHeaviestFirst, type Removal, type WeighedRecord } from "../../retention/heaviest-first.ts";
import { weightInSql, weightOf } from "../../retention/record-weight.ts";
import type { AppendOutcome, DataMessage } from "../data-store.ts";
import { createSearchTable, readSegments, type Segment, searchTable } from "./schema.ts";

/** When a segment is full. */
export interface SegmentBounds {
  /** Records that were added to it. */
  readonly segmentRecords: number;
  /** Bytes of topics and payloads that were added to it. */
  readonly segmentBytes: number;
}

/** Which records go: `recordsOf` (device, limit), `recordsBefore` (Unix ms, limit). */
type Selected = "recordsOf" | "recordsBefore";

/**
 * Adds records to segments and deletes them, each in one transaction, on the store's only connection for writing.
 * Throws what `node:sqlite` throws.
 */
export function createRecordWriting(db: DatabaseSync, { segmentRecords, segmentBytes }: SegmentBounds) {
  const sql = prepareStatements(db);
  let open = openSegment(db, segmentRecords, segmentBytes);
  let insertText = open === null ? null : prepareSearchInsert(db, open.number);

  /** See `DataStore.append`. */
  function append(messages: readonly DataMessage[]): AppendOutcome {
    let stored = 0;
    let repeated = 0;
    let refused = 0;
    const ids: (number | null)[] = [];
    let segment = open;
    let insert = insertText;
    const streams = new Map<string, number>();
    const admissions = new Map<string, number | null>();
    const weights = new Map<string, number>();

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
        const weight = weightOf(deviceId, topic, payload.length);
        segment = grown(segment, id, timestamp, topic.length + payload.length, weight);
        weights.set(deviceId, (weights.get(deviceId) ?? 0) + weight);
        lastId = id;
        ids.push(id);
        stored++;
      }
      if (stored === 0) return;
      if (segment !== null) save(segment);
      sql.setLastId.run(lastId);
      for (const [deviceId, weight] of weights) sql.addBytes.run(deviceId, weight);
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
    sql.addSegment.run(number, firstId, firstId - 1, timestamp, timestamp);
    const counts = { records: 0, appended: 0, bytes: 0, given: 0, kept: 0 };
    const bounds = { first_id: firstId, last_id: firstId - 1, earliest: timestamp, latest: timestamp };
    return { number, ...bounds, ...counts, searchable: true };
  }

  function save(segment: Segment): void {
    const { number, last_id, records, appended, bytes, earliest, latest, given, kept } = segment;
    sql.saveSegment.run(last_id, records, appended, bytes, earliest, latest, given, kept, number);
  }

  /** Deletes the records, updates the counts of devices and segments, and drops empty segments. */
  function remove(records: readonly WeighedRecord[]): number {
    if (records.length === 0) return 0;
    sql.deleteAll.run(JSON.stringify(records.map(({ id }) => id)));
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
        records = sql.oldestOf.all(deviceId, readTo.get(deviceId) ?? 0).map(weighed);
        ahead.set(deviceId, records);
        readTo.set(deviceId, records.at(-1)?.id ?? Number.MAX_SAFE_INTEGER);
      }
      return records.shift() ?? null;
    };
    return chooseHeaviestFirst(devices, oldestOf, removal);
  }

  function removing(choose: () => readonly WeighedRecord[]): number {
    try {
      return inTransaction(db, () => remove(choose()));
    } finally {
      const known = open?.number;
      open = openSegment(db, segmentRecords, segmentBytes);
      if (open?.number !== known) insertText = open === null ? null : prepareSearchInsert(db, open.number);
    }
  }

  return {
    append,
    /** Deletes records and returns how many. */
    remove: (selected: Selected, ...parameters: (string | number)[]) =>
      removing(() => sql[selected].all(...parameters).map(weighed)),
    /** Deletes the oldest records of the devices that weigh most and returns how many. */
    removeHeaviest: (removal: Removal) => removing(() => chooseHeaviest(removal)),
  };
}

/** A segment that has less than this fraction of what was added to it loses its search table. */
const mostlyGone = 4;
/** Records of a device that are looked up at a time. */
const oldestAtOnce = 20;

function weighed(row: Record<string, unknown>): WeighedRecord {
  return { id: Number(row.id), deviceId: String(row.device_id), weight: Number(row.weight) };
}

const empty = new Uint8Array();

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
    addSegment: db.prepare("INSERT INTO segments VALUES (?, ?, ?, 0, 0, 0, ?, ?, 0, 0, 1)"),
    saveSegment: db.prepare(`
      UPDATE segments
      SET last_id = ?, records = ?, appended = ?, bytes = ?, earliest = ?, latest = ?, given = ?, kept = ? WHERE number = ?`),
    lighten: db.prepare("UPDATE segments SET records = ?, kept = ?, searchable = ? WHERE number = ?"),
    dropSegment: db.prepare("DELETE FROM segments WHERE number = ?"),
    refusal: db.prepare("SELECT admitted_at FROM refused_devices WHERE device_id = ?"),
    addBytes: db.prepare(`
      INSERT INTO stored_bytes VALUES (?, ?) ON CONFLICT (device_id) DO UPDATE SET bytes = bytes + excluded.bytes`),
    forgetEmpty: db.prepare("DELETE FROM stored_bytes WHERE bytes <= 0"),
    heaviest: db.prepare("SELECT device_id, bytes FROM stored_bytes ORDER BY bytes DESC LIMIT ?"),
    oldestOf: db.prepare(`
      SELECT id, device_id, ${weightInSql} AS weight FROM records INDEXED BY records_by_device
      WHERE device_id = ? AND id > ? ORDER BY id LIMIT ${oldestAtOnce}`),
    recordsOf: db.prepare(
      `SELECT id, device_id, ${weightInSql} AS weight FROM records WHERE device_id = ? ORDER BY id LIMIT ?`,
    ),
    recordsBefore: db.prepare(`
      SELECT id, device_id, ${weightInSql} AS weight FROM records WHERE timestamp < ? ORDER BY timestamp LIMIT ?`),
    deleteAll: db.prepare("DELETE FROM records WHERE id IN (SELECT value FROM json_each(?))"),
  };
}

function prepareSearchInsert(db: DatabaseSync, segment: number) {
  return db.prepare(
    `INSERT INTO ${searchTable(segment)} (rowid, topic, text) VALUES (?, ?, CAST(? AS TEXT))`,
  );
}

/** The newest segment, unless it is full. */
function openSegment(db: DatabaseSync, maxRecords: number, maxBytes: number): Segment | null {
  const newest = readSegments(db).at(-1);
  return newest?.searchable && !isFull(newest, maxRecords, maxBytes) ? newest : null;
}

function isFull({ appended, bytes }: Segment, maxRecords: number, maxBytes: number): boolean {
  return appended >= maxRecords || bytes >= maxBytes;
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
    given: segment.given + weight,
    kept: segment.kept + weight,
  };
}
