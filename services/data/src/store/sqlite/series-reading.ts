import type { DatabaseSync, StatementSync } from "node:sqlite";
import { maxSeriesOfDevice } from "@devmesh/contracts/model/series";
import { numbersOfMessage } from "../../numbers/numbers-of-message.ts";
import {
  bucketWidths,
  RolledNumbers,
  type RolledSeries,
  type SeriesKey,
  totalsOfSeries,
} from "../../numbers/rolled-numbers.ts";
import { type SeriesTotals, SpanTotals, totalsOf } from "../../numbers/totals.ts";
import type { SeriesOfDevice, SpansQuery } from "../series-store.ts";
import { inOneState } from "./one-state.ts";
import { blockInSql, blocksBetween } from "./schema.ts";

/** A series of a part, and how many of the part's buckets are its own. */
export interface PartSeries extends SeriesKey {
  /** Its id in the store; null for one that was not stored when the part was read. */
  readonly id: number | null;
  readonly buckets: number;
  /** Of its numbers in the part. */
  readonly totals: SeriesTotals;
}

/** What the next records have, up to the record id `to`. */
export interface RolledPart {
  readonly series: readonly PartSeries[];
  /** {@link columnsOfBucket} numbers each, series by series: an array costs less than objects between threads. */
  readonly buckets: Float64Array;
  readonly to: number;
  /** Whether no record followed. */
  readonly atEnd: boolean;
}

/** Width, start, count, min, max, sum, first and when, last and when: the columns of the table after the series. */
export const columnsOfBucket = 10;

/** Reads numbers. */
export interface SeriesReading {
  /** The numbers of the records that are in no bucket yet, of a bounded part of them. */
  readUnrolled(): RolledPart;
  /** Null for more records than may be read. */
  readSpans(query: Omit<SpansQuery, "caller">): readonly (SeriesTotals | null)[] | null;
  listSeries(deviceId: string): SeriesOfDevice;
}

/**
 * Record ids of one part, and spans of five minutes, since one commit writes them. Beyond so many spans that are filled
 * at a time, a part ends before a span gets its second number, and each number costs a write.
 */
const recordsOfPart = 20_000;
const spansOfPart = 10_000;
/** Records that are in the memory together: lists of rows cost a third of what rows cost one by one. */
const recordsAtATime = 100;

/** Id, time in Unix milliseconds, topic, text. */
type TextRow = [number, number, string, string];

/** Reads on a connection that nothing else uses at that time. */
export function createSeriesReading(db: DatabaseSync): SeriesReading {
  const sql = prepareStatements(db);

  function readUnrolled(): RolledPart {
    const [end, from] = [Number(sql.lastId.get()?.id), Number(sql.rolledUp.get()?.id)];
    const to = Math.min(end, from + recordsOfPart);
    const numbers = new RolledNumbers();
    for (let after = from; after < to; ) {
      const rows = sql.textsBetween.all(after, to, recordsAtATime) as unknown as TextRow[];
      for (const [id, timestamp, topic, message] of rows) {
        numbers.add({ topic, timestamp, message });
        if (numbers.spans >= spansOfPart) return partOf(numbers, id, false);
      }
      after = rows.length < recordsAtATime ? to : (rows.at(-1)?.[0] ?? to);
    }
    return partOf(numbers, to, to === end);
  }

  function partOf(numbers: RolledNumbers, to: number, atEnd: boolean): RolledPart {
    const { all } = numbers;
    return { series: all.map(partSeries), buckets: flatBuckets(all), to, atEnd };
  }

  function partSeries(series: RolledSeries): PartSeries {
    const { deviceId, topic, pointer, buckets } = series;
    const id = sql.series.get(topic, pointer)?.id;
    return {
      deviceId,
      topic,
      pointer,
      id: id === undefined ? null : Number(id),
      buckets: buckets.length,
      totals: totalsOfSeries(series),
    };
  }

  function readSpans(query: Omit<SpansQuery, "caller">) {
    const { deviceId, topic, pointer, edges, source, maxRecords } = query;
    const spans = new SpanTotals(edges);
    const [from, until] = [edges[0] ?? 0, edges.at(-1) ?? 0];
    const add = (row: Record<string, unknown>) => {
      const at = Number(row.timestamp);
      if (at < from || at >= until) return;
      const found = numbersOfMessage(String(row.message)).find((number) => number.pointer === pointer);
      if (found !== undefined) spans.add(at, totalsOf(found.value, at));
    };
    if (source === "records") {
      let looked = 0;
      for (const { first_id, last_id } of sql.segmentsWithin.all(from, until))
        for (const row of recordsOn(topic, Number(first_id), Number(last_id))) {
          if (++looked > maxRecords) return null;
          add(row);
        }
      return spans.spans;
    }
    const series = sql.series.get(topic, pointer)?.id;
    if (series !== undefined)
      for (const row of sql.buckets.iterate(series, bucketWidths[source], from, until))
        spans.add(Number(row.start), totalsIn(row));
    else if (Number(sql.countOf.get(deviceId)?.series) >= maxSeriesOfDevice) return spans.spans;
    const rolledUp = Number(sql.rolledUp.get()?.id);
    for (const row of recordsOn(topic, rolledUp + 1, Number(sql.lastId.get()?.id))) add(row);
    return spans.spans;
  }

  function* recordsOn(topic: string, low: number, high: number) {
    for (const range of blocksBetween(low, high, "asc"))
      yield* sql.recordsOn.iterate(range.block, topic, range.low, range.high);
  }

  return {
    readUnrolled: () => inOneState(db, readUnrolled),
    readSpans: (query) => inOneState(db, () => readSpans(query)),
    listSeries: (deviceId) =>
      inOneState(db, () => ({
        series: sql.ofDevice.all(deviceId).map((row) => ({
          deviceId,
          topic: String(row.topic),
          pointer: String(row.pointer),
          firstAt: Number(row.first_at),
          lastAt: Number(row.last_at),
          last: Number(row.last),
        })),
        leftOut: Number(sql.leftOut.get(deviceId)?.numbers ?? 0),
      })),
  };
}

function flatBuckets(series: readonly RolledSeries[]): Float64Array {
  const all = series.flatMap(({ buckets }) => buckets);
  const flat = new Float64Array(all.length * columnsOfBucket);
  for (const [nth, { width, start, totals }] of all.entries()) {
    const { count, min, max, sum, first, firstAt, last, lastAt } = totals;
    const columns = [bucketWidths[width], start, count, min, max, sum, first, firstAt, last, lastAt];
    flat.set(columns, nth * columnsOfBucket);
  }
  return flat;
}

function totalsIn(row: Record<string, unknown>): SeriesTotals {
  return {
    count: Number(row.count),
    min: Number(row.min),
    max: Number(row.max),
    sum: Number(row.sum),
    first: Number(row.first),
    firstAt: Number(row.first_at),
    last: Number(row.last),
    lastAt: Number(row.last_at),
  };
}

function prepareStatements(db: DatabaseSync) {
  const asLists = (statement: StatementSync) => {
    statement.setReturnArrays(true);
    return statement;
  };
  const columns = "id, timestamp, topic, CAST(payload AS TEXT) AS message";
  return {
    lastId: db.prepare("SELECT id FROM last_record"),
    rolledUp: db.prepare("SELECT id FROM rolled_up"),
    textsBetween: asLists(
      db.prepare(
        `SELECT ${columns} FROM records WHERE id > ? AND id <= ? AND is_text = 1 ORDER BY id LIMIT ?`,
      ),
    ),
    recordsOn: db.prepare(`
      SELECT ${columns} FROM records INDEXED BY records_by_topic
      WHERE ${blockInSql("id")} = ? AND topic = ? AND id BETWEEN ? AND ? AND is_text = 1 ORDER BY id`),
    segmentsWithin: db.prepare(
      "SELECT first_id, last_id FROM segments WHERE latest >= ? AND earliest < ? ORDER BY number",
    ),
    series: db.prepare("SELECT id FROM series WHERE topic = ? AND pointer = ?"),
    countOf: db.prepare("SELECT count(*) AS series FROM series WHERE device_id = ?"),
    ofDevice: db.prepare("SELECT * FROM series WHERE device_id = ? ORDER BY topic, pointer"),
    leftOut: db.prepare("SELECT numbers FROM series_left_out WHERE device_id = ?"),
    buckets: db.prepare(
      "SELECT * FROM buckets WHERE series = ? AND width = ? AND start >= ? AND start < ? ORDER BY start",
    ),
  };
}
