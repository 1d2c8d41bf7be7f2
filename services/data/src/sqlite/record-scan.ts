import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite";
import type { DataRecord } from "@devmesh/contracts/model/data-record";
import type { RecordSelection } from "../data-store.ts";
import type { Position, ReadPosition, SeekPosition } from "../position.ts";
import { type TopicPattern, topicPattern } from "../topic-filter.ts";
import { readSegments, type Segment, searchTable } from "./schema.ts";

/** How much one scan may give and take. */
export interface ScanBounds {
  /** The most records; null for no bound but the bytes. */
  readonly limit: number | null;
  /** The most bytes of JSON; the first record of a page is given whatever it weighs. */
  readonly maxBytes: number;
  /** Whether the page holds records already, so that even the first one found must fit. */
  readonly started: boolean;
  /** After this time the scan stops at the next segment's end, in milliseconds. */
  readonly sliceMs: number;
}

/** What a scan found, and where to go on. */
export interface ScanResult {
  readonly items: DataRecord[];
  /** JSON bytes of `items`. */
  readonly bytes: number;
  /** Null where nothing can follow. */
  readonly position: Position | null;
  /** Whether the next record did not fit. */
  readonly full: boolean;
}

/** A device with fewer records than this in a segment is read through; otherwise the search table is asked. */
const fewRecords = 2_000;
/** A topic filter that this many records match at most is answered from the index of topics. */
const fewMatches = 20_000;
/** How many matches are looked up at once. */
const readAhead = 1_000;
/** A trigram that so many records of a segment hold is common. */
const commonTrigram = 512;
/** More trigrams than this make no search more precise. */
const maxTrigrams = 24;

/** Searches records, one segment after the other, on a connection of its own. */
export interface RecordScan {
  /** Reads from one consistent state of the store; takes about `sliceMs`, and at least one segment's time. */
  scan(selection: RecordSelection, position: Position, bounds: ScanBounds): ScanResult;
}

/** Makes a connection ready for scanning; nothing else may use it meanwhile. */
export function createRecordScan(db: DatabaseSync): RecordScan {
  const statements = new Map<string, StatementSync>();
  let pattern: TopicPattern | null = null;
  db.function("topic_matches", { deterministic: true }, (topic) => (pattern?.matches(String(topic)) ? 1 : 0));

  function prepared(sql: string): StatementSync {
    const known = statements.get(sql);
    if (known) return known;
    const statement = db.prepare(sql);
    // A search table's name stands in its statements and goes out of use with it.
    if (!sql.includes(searchTable(0).slice(0, -1))) statements.set(sql, statement);
    return statement;
  }

  return {
    scan(selection, position, bounds) {
      const end = performance.now() + bounds.sliceMs;
      if (selection.filter !== undefined && !selection.filter.isWellFormed()) return nothing;
      db.exec("BEGIN");
      try {
        pattern = patternOf(selection);
        const search = new Search(prepared, selection, pattern);
        const segments = readSegments(db).filter((segment) => mayHold(segment, selection));
        const inTime = () => performance.now() < end;
        if (position.kind === "read") return read(search, segments, position, bounds, inTime);
        const sought = seek(search, segments, position, inTime);
        if (sought.kind === "seek") return { items: [], bytes: 0, position: sought, full: false };
        return read(search, segments, sought, bounds, inTime);
      } finally {
        db.exec("COMMIT");
      }
    },
  };
}

const nothing: ScanResult = { items: [], bytes: 0, position: null, full: false };

function patternOf({ deviceId, topic }: RecordSelection): TopicPattern | null {
  return deviceId === undefined || topic === undefined ? null : topicPattern(deviceId, topic);
}

function mayHold(segment: Segment, { since, until }: RecordSelection): boolean {
  if (segment.records === 0) return false;
  return (
    (since === undefined || segment.latest >= since) && (until === undefined || segment.earliest < until)
  );
}

/** Counts back from the end of the order until the record is found where a negative `skip` begins. */
function seek(
  search: Search,
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

/** Reads on in the order asked for, until enough is found, the page is full, the time is over or the end is reached. */
function read(
  search: Search,
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

/** Ids of one segment that are still ahead; both inclusive. */
interface Part {
  readonly segment: Segment;
  readonly low: number;
  readonly high: number;
  /** Whether it is the whole segment. */
  readonly whole: boolean;
}

function inOrder(segments: readonly Segment[], order: "asc" | "desc"): readonly Segment[] {
  return order === "asc" ? segments : segments.toReversed();
}

/** What of a segment lies behind `at`, going in that order. */
function partOf(segment: Segment, order: "asc" | "desc", at: number | null): Part | null {
  const low = order === "asc" && at !== null ? Math.max(segment.first_id, at + 1) : segment.first_id;
  const high = order === "desc" && at !== null ? Math.min(segment.last_id, at - 1) : segment.last_id;
  if (low > high) return null;
  return { segment, low, high, whole: low === segment.first_id && high === segment.last_id };
}

type Parameters = Record<string, SQLInputValue>;

/** Where to look, as SQL: the tables with the index to use, and what holds besides the conditions. */
interface Access {
  /** The record's id, in the form whose order the way in already has. */
  readonly id: "r.id" | "s.rowid";
  readonly from: string;
  readonly where: readonly string[];
  readonly parameters: Parameters;
}

/** One selection as SQL. The way into the data is chosen for each segment; what it leads to is always verified. */
class Search {
  readonly order: "asc" | "desc";
  private readonly prepared: (sql: string) => StatementSync;
  private readonly selection: RecordSelection;
  private readonly pattern: TopicPattern | null;
  private readonly conditions: readonly string[];
  private readonly parameters: Parameters;
  /** Trigrams that all matches hold; none where the filter is absent or too short. */
  private readonly trigrams: readonly string[];
  private chosen: { readonly segment: number; readonly query: string } | null = null;
  /** Ids of all records in the pattern's reach, ascending, where these are few. */
  private readonly candidates: readonly number[] | null;

  constructor(
    prepared: (sql: string) => StatementSync,
    selection: RecordSelection,
    pattern: TopicPattern | null,
  ) {
    this.prepared = prepared;
    this.selection = selection;
    this.pattern = pattern;
    this.order = selection.order;
    const { conditions, parameters } = conditionsOf(selection, pattern);
    this.conditions = conditions;
    this.parameters = parameters;
    this.trigrams = trigramsOf(selection.filter ?? "");
    this.candidates = pattern?.range ? this.findCandidates(pattern) : null;
  }

  /** How many records of the part match, counted up to `most`. */
  count(part: Part, most: number): number {
    if (part.whole && this.holdsAll(part.segment)) return Math.min(part.segment.records, most);
    const { sql, parameters } = this.select(this.access(part), part);
    const counted = this.prepared(`SELECT count(*) AS records FROM (${sql} LIMIT :most)`);
    return Number(counted.get({ ...parameters, most })?.records);
  }

  /** The id of the match that comes after `offset` others in the given order. */
  idAt(part: Part, order: "asc" | "desc", offset: number): number | null {
    return this.ids(part, order, 1, offset)[0] ?? null;
  }

  /** The matches of the part in order, one at a time. */
  *records(part: Part, skip: number, most: number): Generator<DataRecord> {
    const record = this.prepared(
      "SELECT id, timestamp, device_id, topic, is_text, payload FROM records WHERE id = ?",
    );
    let { low, high } = part;
    let left = most;
    let toSkip = skip;
    while (left > 0 && low <= high) {
      const ids = this.ids({ ...part, low, high }, this.order, Math.min(left, readAhead), toSkip);
      for (const id of ids) {
        const row = record.get(id);
        if (row !== undefined) yield recordOf(row);
      }
      const last = ids.at(-1);
      if (last === undefined || ids.length < readAhead) return;
      left -= ids.length;
      toSkip = 0;
      if (this.order === "asc") low = last + 1;
      else high = last - 1;
    }
  }

  /** Ids first: where an order has to be made, payloads stay out of it. */
  private ids(part: Part, order: "asc" | "desc", limit: number, offset: number): number[] {
    const access = this.access(part);
    const { sql, parameters } = this.select(access, part);
    const statement = this.prepared(`${sql} ORDER BY ${access.id} ${order} LIMIT :limit OFFSET :offset`);
    return statement.all({ ...parameters, limit, offset }).map((row) => Number(row.id));
  }

  private select(access: Access, part: Part) {
    const where = [...access.where, ...this.conditions].join(" AND ");
    return {
      sql: `SELECT ${access.id} AS id FROM ${access.from} WHERE ${where}`,
      parameters: { ...this.parameters, ...access.parameters, low: part.low, high: part.high },
    };
  }

  private access(part: Part): Access {
    if (this.candidates !== null) return this.throughCandidates(this.candidates, part);
    const narrow = this.throughIndex();
    if (this.trigrams.length === 0) return narrow ?? everything;
    if (narrow !== null && this.isShort(narrow, part)) return narrow;
    const table = searchTable(part.segment.number);
    return {
      id: "s.rowid",
      from: `${table} AS s CROSS JOIN records AS r ON r.id = s.rowid`,
      where: [`${table} MATCH :trigrams`, "s.rowid BETWEEN :low AND :high"],
      parameters: { trigrams: this.searchQuery(part.segment.number) },
    };
  }

  /**
   * The trigrams to ask a segment for. A common one makes the index walk a long list and narrows little, so that two rare ones
   * do better alone than with the others.
   */
  private searchQuery(segment: number): string {
    if (this.chosen?.segment === segment) return this.chosen.query;
    const table = searchTable(segment);
    const counted = this.prepared(
      `SELECT count(*) AS hits FROM (SELECT 1 FROM ${table} WHERE ${table} MATCH ? LIMIT ${commonTrigram})`,
    );
    const rare = this.trigrams
      .map((trigram) => ({ trigram, hits: Number(counted.get(trigram)?.hits) }))
      .filter(({ hits }) => hits < commonTrigram)
      .sort((a, b) => a.hits - b.hits)
      .map(({ trigram }) => trigram);
    const query = (rare.length > 0 ? rare.slice(0, 2) : this.trigrams).join(" AND ");
    this.chosen = { segment, query };
    return query;
  }

  private throughIndex(): Access | null {
    const where = ["r.id BETWEEN :low AND :high"];
    if (this.pattern?.exact && this.pattern.range === null) {
      return { id: "r.id", from: "records AS r INDEXED BY records_by_topic", where, parameters: {} };
    }
    if (this.selection.deviceId === undefined) return null;
    return { id: "r.id", from: "records AS r INDEXED BY records_by_device", where, parameters: {} };
  }

  private throughCandidates(candidates: readonly number[], { low, high }: Part): Access {
    const ids = candidates.filter((id) => id >= low && id <= high);
    return {
      id: "r.id",
      from: "json_each(:ids) AS c CROSS JOIN records AS r ON r.id = c.value",
      where: ["r.id BETWEEN :low AND :high"],
      parameters: { ids: JSON.stringify(ids) },
    };
  }

  /** Whether the index alone leads to few records of the part. */
  private isShort(access: Access, { low, high }: Part): boolean {
    const topic = this.pattern?.exact && this.pattern.range === null ? this.pattern.exact : null;
    const condition = topic === null ? "r.device_id = :key" : "r.topic = :key";
    const row = this.prepared(
      `SELECT count(*) AS records FROM (SELECT 1 FROM ${access.from} WHERE ${condition} AND r.id BETWEEN :low AND :high LIMIT :few)`,
    ).get({ key: topic ?? this.selection.deviceId ?? "", low, high, few: fewRecords });
    return Number(row?.records) < fewRecords;
  }

  private findCandidates({ exact, range }: TopicPattern): readonly number[] | null {
    if (range === null) return null;
    const inRange = this.prepared(
      "SELECT id FROM records INDEXED BY records_by_topic WHERE topic >= ? AND topic < ? LIMIT ?",
    ).all(range.from, range.to, fewMatches + 1);
    if (inRange.length > fewMatches) return null;
    const equal =
      exact === null
        ? []
        : this.prepared("SELECT id FROM records INDEXED BY records_by_topic WHERE topic = ? LIMIT ?").all(
            exact,
            fewMatches + 1,
          );
    if (inRange.length + equal.length > fewMatches) return null;
    return [...inRange, ...equal].map((row) => Number(row.id)).sort((a, b) => a - b);
  }

  /** Whether nothing of the segment can fail to match. */
  private holdsAll(segment: Segment): boolean {
    const { deviceId, filter, since, until } = this.selection;
    if (deviceId !== undefined || filter !== undefined) return false;
    return (
      (since === undefined || segment.earliest >= since) && (until === undefined || segment.latest < until)
    );
  }
}

const everything: Access = {
  id: "r.id",
  from: "records AS r",
  where: ["r.id BETWEEN :low AND :high"],
  parameters: {},
};

function conditionsOf({ deviceId, filter, since, until }: RecordSelection, pattern: TopicPattern | null) {
  const conditions: string[] = [];
  const parameters: Parameters = {};
  if (deviceId !== undefined) {
    conditions.push("r.device_id = :device");
    parameters.device = deviceId;
  }
  if (pattern !== null) {
    const ways: string[] = [];
    if (pattern.exact !== null) {
      ways.push("r.topic = :exact");
      parameters.exact = pattern.exact;
    }
    if (pattern.range !== null) {
      const verified = pattern.rangeIsExact ? "" : " AND topic_matches(r.topic)";
      ways.push(`(r.topic >= :from AND r.topic < :to${verified})`);
      parameters.from = pattern.range.from;
      parameters.to = pattern.range.to;
    }
    conditions.push(`(${ways.join(" OR ")})`);
  }
  if (since !== undefined) {
    conditions.push("r.timestamp >= :since");
    parameters.since = since;
  }
  if (until !== undefined) {
    conditions.push("r.timestamp < :until");
    parameters.until = until;
  }
  if (filter !== undefined) {
    // As bytes: exact for UTF-8, and a NUL in a payload ends nothing.
    conditions.push(
      "(instr(CAST(r.topic AS BLOB), :needle) > 0 OR (r.is_text = 1 AND instr(r.payload, :needle) > 0))",
    );
    parameters.needle = Buffer.from(filter);
  }
  return { conditions, parameters };
}

/** Trigrams of the filter, each as an FTS5 query; none below three characters, which the index knows nothing of. */
function trigramsOf(filter: string): readonly string[] {
  const characters = [...filter];
  const trigrams = new Set<string>();
  for (let at = 0; at + 3 <= characters.length; at++) trigrams.add(characters.slice(at, at + 3).join(""));
  const stride = Math.ceil(trigrams.size / maxTrigrams);
  return [...trigrams]
    .filter((_, at) => at % stride === 0)
    .map((trigram) => `"${trigram.replaceAll('"', '""')}"`);
}

function recordOf(row: Record<string, unknown>): DataRecord {
  const payload =
    row.payload instanceof Uint8Array
      ? Buffer.from(row.payload.buffer, row.payload.byteOffset, row.payload.byteLength)
      : Buffer.alloc(0);
  const record = {
    id: Number(row.id),
    timestamp: new Date(Number(row.timestamp)).toISOString(),
    device_id: String(row.device_id),
    topic: String(row.topic),
  };
  if (row.is_text === 1) return { ...record, message: payload.toString("utf8") };
  return { ...record, message: payload.toString("base64"), encoding: "base64" };
}
