import type { DatabaseSync } from "node:sqlite";
import { maxSeriesOfDevice } from "@devmesh/contracts/model/series";
import { numbersOfMessage } from "../../numbers/numbers-of-message.ts";
import { bucketWidths, RolledNumbers, type RolledSeries } from "../../numbers/rolled-numbers.ts";
import { type SeriesTotals, SpanTotals, totalsOf } from "../../numbers/totals.ts";
import type { SeriesOfDevice, SpansQuery } from "../series-store.ts";
import { inOneState } from "./one-state.ts";

/** What the next records have, up to the record id `to`. */
export interface RolledPart {
  readonly series: readonly RolledSeries[];
  readonly to: number;
  /** Whether no record followed. */
  readonly atEnd: boolean;
}

/** Reads numbers. */
export interface SeriesReading {
  /** The numbers of the records that are in no bucket yet, of a bounded part of them. */
  readUnrolled(): RolledPart;
  /** Null for more records than may be read. */
  readSpans(query: Omit<SpansQuery, "caller">): readonly (SeriesTotals | null)[] | null;
  listSeries(deviceId: string): SeriesOfDevice;
}

/** Record ids of one part, and spans of five minutes, since one commit writes them. */
const recordsOfPart = 20_000;
const spansOfPart = 500;

/** Reads on a connection that nothing else uses at that time. */
export function createSeriesReading(db: DatabaseSync): SeriesReading {
  const sql = prepareStatements(db);

  function readUnrolled(): RolledPart {
    const [end, from] = [Number(sql.lastId.get()?.id), Number(sql.rolledUp.get()?.id)];
    const to = Math.min(end, from + recordsOfPart);
    const numbers = new RolledNumbers();
    for (const row of sql.textsBetween.iterate(from, to)) {
      numbers.add({
        topic: String(row.topic),
        timestamp: Number(row.timestamp),
        message: String(row.message),
      });
      if (numbers.spans >= spansOfPart) return { series: numbers.all, to: Number(row.id), atEnd: false };
    }
    return { series: numbers.all, to, atEnd: to === end };
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
        for (const row of sql.recordsBetween.iterate(topic, Number(first_id), Number(last_id))) {
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
    for (const row of sql.recordsOnTopic.iterate(topic, Number(sql.rolledUp.get()?.id))) add(row);
    return spans.spans;
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
  const columns = "id, timestamp, topic, CAST(payload AS TEXT) AS message";
  return {
    lastId: db.prepare("SELECT id FROM last_record"),
    rolledUp: db.prepare("SELECT id FROM rolled_up"),
    textsBetween: db.prepare(
      `SELECT ${columns} FROM records WHERE id > ? AND id <= ? AND is_text = 1 ORDER BY id`,
    ),
    recordsOnTopic: db.prepare(
      `SELECT ${columns} FROM records INDEXED BY records_by_topic WHERE topic = ? AND id > ? AND is_text = 1 ORDER BY id`,
    ),
    recordsBetween: db.prepare(
      `SELECT ${columns} FROM records INDEXED BY records_by_topic WHERE topic = ? AND id BETWEEN ? AND ? AND is_text = 1 ORDER BY id`,
    ),
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
