import type { DatabaseSync } from "node:sqlite";
import { maxSeriesOfDevice } from "@devmesh/contracts/model/series";
import { inTransaction } from "@devmesh/store/sqlite";
import { bucketWidths, type RolledSeries, type SeriesBucket } from "../../numbers/rolled-numbers.ts";
import type { BucketExpiry } from "../series-store.ts";
import type { RolledPart } from "./series-reading.ts";

/** Bytes of a bucket in the file; 83 were counted, in pages that are mostly full. */
export const bytesOfBucket = 100;

/** Buckets that one step deletes. */
const bucketsOfStep = 2_000;

/**
 * Writes buckets, each part and step in one transaction, on the store's only connection for writing. Throws what
 * `node:sqlite` throws.
 */
export function createSeriesWriting(db: DatabaseSync) {
  const sql = prepareStatements(db);

  /** Its id; null where the device has the most it may. */
  function seriesOf({ deviceId, topic, pointer, buckets }: RolledSeries): number | null {
    const known = sql.find.get(topic, pointer)?.id;
    if (known !== undefined) return Number(known);
    if (Number(sql.countOf.get(deviceId)?.series) >= maxSeriesOfDevice) {
      const numbers = buckets.reduce(
        (sum, { width, totals }) => sum + (width === "hours" ? totals.count : 0),
        0,
      );
      sql.leaveOut.run(deviceId, numbers);
      return null;
    }
    return Number(sql.create.get(deviceId, topic, pointer)?.id);
  }

  /** Notes that a series has more buckets, or fewer. */
  function grow(series: number, buckets: number): void {
    if (buckets === 0) return;
    sql.grow.run(buckets, series);
    sql.growAll.run(buckets);
  }

  function drop(series: number): void {
    sql.growAll.run(-Number(sql.drop.get(series)?.buckets ?? 0));
  }

  /** Returns whether it is a new bucket. */
  function merge(series: number, { width, start, totals }: SeriesBucket): boolean {
    const { count, min, max, sum, first, firstAt, last, lastAt } = totals;
    const milliseconds = bucketWidths[width];
    const given = { count, min, max, sum, first, firstAt, last, lastAt, series, width: milliseconds, start };
    if (sql.add.run(given).changes > 0) return false;
    sql.insert.run(given);
    return true;
  }

  function store({ series, to }: RolledPart): void {
    for (const one of series) {
      const id = seriesOf(one);
      if (id === null) continue;
      let added = 0;
      for (const bucket of one.buckets) if (merge(id, bucket)) added++;
      for (const { width, totals } of one.buckets) {
        const { firstAt, lastAt, last } = totals;
        if (width === "hours") sql.note.run({ firstAt, lastAt, last, id });
      }
      grow(id, added);
    }
    sql.setRolledUp.run(to);
  }

  return {
    /** Adds a part that follows what is rolled up. */
    store: (part: RolledPart) => inTransaction(db, () => store(part)),

    /** Deletes up to `limit` series of a device and returns how many. */
    removeOf(deviceId: string, limit: number): number {
      return inTransaction(db, () => {
        const found = sql.ofDevice.all(deviceId, limit);
        for (const { id } of found) {
          sql.dropBuckets.run(Number(id));
          drop(Number(id));
        }
        if (found.length === 0) sql.dropLeftOut.run(deviceId);
        return found.length;
      });
    },

    /** Deletes old buckets of the series after the id `after`; returns the id up to which it did, null at the end. */
    expire(after: number, { minutes, hours }: BucketExpiry): number | null {
      return inTransaction(db, () => {
        let removed = 0;
        for (const { id, last_at } of sql.after.all(after)) {
          const series = Number(id);
          let gone = Number(sql.dropBefore.run(series, bucketWidths.minutes, minutes).changes);
          gone += Number(sql.dropBefore.run(series, bucketWidths.hours, hours - bucketWidths.hours).changes);
          grow(series, -gone);
          if (Number(last_at) < hours) drop(series);
          removed += gone;
          if (removed >= bucketsOfStep) return series;
          after = series;
        }
        return sql.after.get(after) === undefined ? null : after;
      });
    },

    /** While there is more, deletes some of the oldest hours of the device that has most; returns whether it did. */
    shrink(maxBytes: number): boolean {
      return inTransaction(db, () => {
        if (Number(sql.total.get()?.buckets) * bytesOfBucket <= maxBytes) return false;
        const deviceId = sql.heaviest.get()?.device_id;
        if (deviceId === undefined) return false;
        const series = sql.ofDevice.all(String(deviceId), maxSeriesOfDevice).map(({ id }) => Number(id));
        const each = Math.ceil(bucketsOfStep / Math.max(1, series.length));
        let removed = 0;
        for (const id of series) {
          const gone = Number(sql.dropOldest.run({ id, each }).changes);
          grow(id, -gone);
          removed += gone;
        }
        return removed > 0;
      });
    },
  };
}

function prepareStatements(db: DatabaseSync) {
  const lowest = -Number.MAX_VALUE;
  return {
    find: db.prepare("SELECT id FROM series WHERE topic = ? AND pointer = ?"),
    countOf: db.prepare("SELECT count(*) AS series FROM series WHERE device_id = ?"),
    leaveOut: db.prepare(`
      INSERT INTO series_left_out VALUES (?, ?)
      ON CONFLICT (device_id) DO UPDATE SET numbers = numbers + excluded.numbers`),
    create: db.prepare(`
      INSERT INTO series (device_id, topic, pointer, first_at, last_at, last, buckets)
      VALUES (?, ?, ?, ${Number.MAX_SAFE_INTEGER}, ${Number.MIN_SAFE_INTEGER}, 0, 0) RETURNING id`),
    note: db.prepare(`
      UPDATE series SET first_at = min(first_at, :firstAt), last = iif(:lastAt >= last_at, :last, last),
        last_at = max(last_at, :lastAt) WHERE id = :id`),
    grow: db.prepare("UPDATE series SET buckets = buckets + ? WHERE id = ?"),
    add: db.prepare(`
      UPDATE buckets SET count = count + :count, min = min(min, :min), max = max(max, :max),
        sum = max(${lowest}, min(${-lowest}, sum + :sum)),
        first = iif(:firstAt < first_at, :first, first), first_at = min(first_at, :firstAt),
        last = iif(:lastAt >= last_at, :last, last), last_at = max(last_at, :lastAt)
      WHERE series = :series AND width = :width AND start = :start`),
    insert: db.prepare(`
      INSERT INTO buckets (series, width, start, count, min, max, sum, first, first_at, last, last_at)
      VALUES (:series, :width, :start, :count, :min, :max, :sum, :first, :firstAt, :last, :lastAt)`),
    setRolledUp: db.prepare("UPDATE rolled_up SET id = ?"),
    ofDevice: db.prepare("SELECT id FROM series WHERE device_id = ? LIMIT ?"),
    dropBuckets: db.prepare("DELETE FROM buckets WHERE series = ?"),
    growAll: db.prepare("UPDATE rolled_up SET buckets = buckets + ?"),
    drop: db.prepare("DELETE FROM series WHERE id = ? RETURNING buckets"),
    dropLeftOut: db.prepare("DELETE FROM series_left_out WHERE device_id = ?"),
    after: db.prepare("SELECT id, last_at FROM series WHERE id > ? ORDER BY id LIMIT 500"),
    dropBefore: db.prepare("DELETE FROM buckets WHERE series = ? AND width = ? AND start < ?"),
    total: db.prepare("SELECT buckets FROM rolled_up"),
    heaviest: db.prepare(
      "SELECT device_id FROM series GROUP BY device_id ORDER BY sum(buckets) DESC LIMIT 1",
    ),
    dropOldest: db.prepare(`
      DELETE FROM buckets WHERE series = :id AND width = ${bucketWidths.hours} AND start IN
        (SELECT start FROM buckets WHERE series = :id AND width = ${bucketWidths.hours} ORDER BY start LIMIT :each)`),
  };
}
