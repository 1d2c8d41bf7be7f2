import type { DatabaseSync } from "node:sqlite";
import { inTransaction } from "@devmesh/store/sqlite";
import type { AppendOutcome, DataMessage } from "../data-store.ts";
import { createSearchTable, readSegments, type Segment, searchTable } from "./schema.ts";

/** When a segment takes no more records, and the next one begins. */
export interface SegmentBounds {
  /** It was given this many records. */
  readonly segmentRecords: number;
  /** It was given this many bytes of topics and payloads. */
  readonly segmentBytes: number;
}

/** Which records go: `deleteOf` (device, limit), `deleteBefore` (Unix ms, limit), `deleteFirst` (limit, bytes that are to go). */
type Deletion = "deleteOf" | "deleteBefore" | "deleteFirst";

/** Puts records into segments and takes them out, each in one transaction. Throws what `node:sqlite` throws. */
export interface RecordWriting {
  /** Stores the messages of devices that are admitted, those that are new. */
  append(messages: readonly DataMessage[]): AppendOutcome;
  /** Deletes records; answers how many. */
  remove(deletion: Deletion, ...parameters: (string | number)[]): number;
}

/** Writes on the one connection that may. */
export function createRecordWriting(
  db: DatabaseSync,
  { segmentRecords, segmentBytes }: SegmentBounds,
): RecordWriting {
  const sql = prepareStatements(db);
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
  function remove(statement: Deletion, ...parameters: (string | number)[]): number {
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

  return {
    append,
    remove(deletion, ...parameters) {
      try {
        return remove(deletion, ...parameters);
      } finally {
        const known = open?.number;
        open = openSegment(db, segmentRecords, segmentBytes);
        if (open?.number !== known) insertText = open === null ? null : prepareSearchInsert(db, open.number);
      }
    },
  };
}

const empty = new Uint8Array();

function prepareStatements(db: DatabaseSync) {
  return {
    lastId: db.prepare("SELECT id FROM last_record"),
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
