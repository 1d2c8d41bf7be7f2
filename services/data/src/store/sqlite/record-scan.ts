import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { DataRecord } from "@devmesh/contracts/model/data-record";
import type { RecordSelection } from "../data-store.ts";
import type { Position, ReadPosition, SeekPosition } from "../position.ts";
import { type TopicPattern, topicPattern } from "../topic-filter.ts";
import { inOneState } from "./one-state.ts";
import { RecordSearch } from "./record-search.ts";
import { readSegments, type Segment, searchTable } from "./schema.ts";
import { inOrder, mayHold, partOf } from "./segment-part.ts";

/** Bounds of one scan. */
interface ScanBounds {
  /** The most records; null for no bound. */
  readonly limit: number | null;
  /** The most bytes of JSON; the first record of a page is exempt. */
  readonly maxBytes: number;
  /** Whether the page has records already. */
  readonly started: boolean;
  /** After this time the scan stops at the end of the segment, in milliseconds. */
  readonly sliceMs: number;
}

/** The result of a scan. */
export interface ScanResult {
  readonly items: DataRecord[];
  /** Of `items`, as JSON. */
  readonly bytes: number;
  /** Where to go on; null when nothing can follow. */
  readonly position: Position | null;
  /** Whether the next record did not fit. */
  readonly full: boolean;
}

/** Searches records. */
export interface RecordScan {
  /** Reads one consistent state of the store, for about `sliceMs` and at least one segment. */
  scan(selection: RecordSelection, position: Position, bounds: ScanBounds): ScanResult;
}

/** Searches segment by segment, on a connection that nothing else uses at that time. */
export function createRecordScan(db: DatabaseSync): RecordScan {
  const statements = new Map<string, StatementSync>();
  let pattern: TopicPattern | null = null;
  db.function("topic_matches", { deterministic: true }, (topic) => (pattern?.matches(String(topic)) ? 1 : 0));

  function prepared(sql: string): StatementSync {
    const known = statements.get(sql);
    if (known) return known;
    const statement = db.prepare(sql);
    // A statement with the name of a search table is not cached, since the table is dropped one day.
    if (!sql.includes(searchTable(0).slice(0, -1))) statements.set(sql, statement);
    return statement;
  }

  return {
    scan(selection, position, bounds) {
      const end = performance.now() + bounds.sliceMs;
      if (selection.filter !== undefined && !selection.filter.isWellFormed()) return nothing;
      return inOneState(db, () => {
        pattern = patternOf(selection);
        const search = new RecordSearch(prepared, selection, pattern);
        const segments = readSegments(db).filter((segment) => mayHold(segment, selection));
        const inTime = () => performance.now() < end;
        if (position.kind === "read") return read(search, segments, position, bounds, inTime);
        const sought = seek(search, segments, position, inTime);
        if (sought.kind === "seek") return { items: [], bytes: 0, position: sought, full: false };
        return read(search, segments, sought, bounds, inTime);
      });
    },
  };
}

const nothing: ScanResult = { items: [], bytes: 0, position: null, full: false };

function patternOf({ deviceId, topic }: RecordSelection): TopicPattern | null {
  return deviceId === undefined || topic === undefined ? null : topicPattern(deviceId, topic);
}

/** Counts back from the end of the order to the record where a negative `skip` begins. */
function seek(
  search: RecordSearch,
  segments: readonly Segment[],
  position: SeekPosition,
  inTime: () => boolean,
): Position {
  const backwards = search.order === "asc" ? "desc" : "asc";
  let { at, found } = position;
  const { wanted } = position;
  let worked = false;
  for (const segment of inOrder(segments, backwards)) {
    const part = partOf(segment, backwards, at);
    if (part === null) continue;
    if (worked && !inTime()) return { kind: "seek", at, found, wanted };
    worked = true;
    const here = search.count(part, wanted - found);
    if (found + here === wanted) {
      const first = search.idAt(part, backwards, wanted - found - 1);
      const before = first === null ? null : search.order === "asc" ? first - 1 : first + 1;
      return { kind: "read", at: before, skip: 0, remaining: wanted, skipped: true };
    }
    found += here;
    at = backwards === "desc" ? part.low : part.high;
  }
  return { kind: "read", at: null, skip: 0, remaining: found, skipped: true };
}

/** Reads until enough is found, the page is full, the time is over or the end is reached. */
function read(
  search: RecordSearch,
  segments: readonly Segment[],
  position: ReadPosition,
  bounds: ScanBounds,
  inTime: () => boolean,
): ScanResult {
  const items: DataRecord[] = [];
  let bytes = 0;
  let { at, skip, remaining } = position;
  const stopped = (full: boolean): ScanResult => ({
    items,
    bytes,
    position: remaining === 0 ? null : { ...position, at, skip, remaining },
    full,
  });
  const wanted = () => Math.min(bounds.limit ?? Infinity, position.remaining ?? Infinity) - items.length;

  let worked = false;
  for (const segment of inOrder(segments, search.order)) {
    const part = partOf(segment, search.order, at);
    if (part === null) continue;
    if (wanted() <= 0 || (worked && !inTime())) return stopped(false);
    worked = true;
    if (skip > 0) {
      const skippable = search.count(part, skip);
      if (skippable < skip) {
        skip -= skippable;
        at = search.order === "asc" ? part.high : part.low;
        continue;
      }
    }
    for (const record of search.records(part, skip, wanted())) {
      const weight = Buffer.byteLength(JSON.stringify(record)) + 1;
      if (bytes + weight > bounds.maxBytes && (items.length > 0 || bounds.started)) return stopped(true);
      items.push(record);
      bytes += weight;
      at = record.id;
      skip = 0;
      if (remaining !== null) remaining--;
    }
    skip = 0;
    if (wanted() > 0) at = search.order === "asc" ? part.high : part.low;
  }
  if (wanted() <= 0) return stopped(false);
  return { items, bytes, position: null, full: false };
}
