import type { DatabaseSync } from "node:sqlite";
import { maxSeriesOfDevice } from "@devmesh/contracts/model/series";
import { inTransaction } from "@devmesh/store/sqlite";
import { bucketWidths } from "../../numbers/rolled-numbers.ts";
import type { BucketExpiry } from "../series-store.ts";
import { columnsOfBucket, type PartSeries, type RolledPart } from "./series-reading.ts";

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

  /** A new one's id; null where the device has the most it may. */
  function createSeries({ deviceId, topic, pointer, totals }: PartSeries): number | null {
    if (Number(sql.countOf.get(deviceId)?.series) >= maxSeriesOfDevice) {
      sql.leaveOut.run(deviceId, totals.count);
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

  /** Adds buckets of a series and returns how many are new. */
  function merge(series: number, buckets: Float64Array): number {
    let added = 0;
    for (let at = 0; at < buckets.length; at += columnsOfBucket) {
      const columns = buckets.subarray(at, at + columnsOfBucket);
      // Most are new.
      if (sql.insert.run(series, ...columns).changes > 0) added++;
      else sql.add.run(series, ...columns);
    }
    return added;
  }

  function store({ series, buckets, to }: RolledPart): void {
    let at = 0;
    let added = 0;
    for (const one of series) {
      const own = buckets.subarray(at, at + one.buckets * columnsOfBucket);
      at += own.length;
      const id = one.id ?? createSeries(one);
      if (id === null) continue;
      const { firstAt, lastAt, last } = one.totals;
      const more = merge(id, own);
      sql.note.run({ firstAt, lastAt, last, more, id });
      added += more;
    }
    sql.growAll.run(added);
    sql.setRolledUp.run(to);
  }

  return {
    /** Adds a part that follows what is rolled up. No series was deleted since it was read. */
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
  const insert = `
    INSERT INTO buckets (series, width, start, count, min, max, sum, first, first_at, last, last_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
  return {
    countOf: db.prepare("SELECT count(*) AS series FROM series WHERE device_id = ?"),
    leaveOut: db.prepare(`
      INSERT INTO series_left_out VALUES (?, ?)
      ON CONFLICT (device_id) DO UPDATE SET numbers = numbers + excluded.numbers`),
    create: db.prepare(`
      INSERT INTO series (device_id, topic, pointer, first_at, last_at, last, buckets)
      VALUES (?, ?, ?, ${Number.MAX_SAFE_INTEGER}, ${Number.MIN_SAFE_INTEGER}, 0, 0) RETURNING id`),
    note: db.prepare(`
      UPDATE series SET first_at = min(first_at, :firstAt), last = iif(:lastAt >= last_at, :last, last),
        last_at = max(last_at, :lastAt), buckets = buckets + :more WHERE id = :id`),
    grow: db.prepare("UPDATE series SET buckets = buckets + ? WHERE id = ?"),
    insert: db.prepare(`${insert} ON CONFLICT DO NOTHING`),
    add: db.prepare(`
      ${insert} ON CONFLICT DO UPDATE SET count = count + excluded.count, min = min(min, excluded.min),
        max = max(max, excluded.max), sum = max(${lowest}, min(${-lowest}, sum + excluded.sum)),
        first = iif(excluded.first_at < first_at, excluded.first, first), first_at = min(first_at, excluded.first_at),
        last = iif(excluded.last_at >= last_at, excluded.last, last), last_at = max(last_at, excluded.last_at)`),
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
