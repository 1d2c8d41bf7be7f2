import type { SQLInputValue, StatementSync } from "node:sqlite";
import type { DataRecord } from "@devmesh/contracts/model/data-record";
import { dataRecord, type RecordSelection } from "../data-store.ts";
import { type TopicPattern, topicsOf } from "../topic-filter.ts";
import { type BlockRange, blockInSql, blocksBetween, type Segment, searchTable } from "./schema.ts";
import { isWithin, type SegmentPart } from "./segment-part.ts";

/** A device with fewer records in a segment is read through; otherwise the search table is used. */
const fewRecords = 2_000;
/** Matches of one look-up. */
const readAhead = 1_000;
/** Ids from an index that are compared with all conditions by one statement. */
const candidatesAtATime = 2_000;
/** A trigram is common when so many records of a segment have it. */
const commonTrigram = 512;
/** More trigrams do not make a search more precise. */
const maxTrigrams = 24;

type Parameters = Record<string, SQLInputValue>;

/** A condition on the second column of an index by blocks. */
interface IndexKeys {
  readonly where: string;
  readonly parameters: Parameters;
}

/** An index by blocks, and what of it has the matches. */
interface BlockIndex {
  readonly name: "records_by_device" | "records_by_topic";
  /** Without a record in common: an index is not used for conditions with `OR`. */
  readonly keys: readonly IndexKeys[];
  /** Whether it has the ids of a block in their order. */
  readonly isSorted: boolean;
}

/** Where to look, as SQL: the tables with the index to use, and its conditions. */
interface Access {
  /** The column of the record's id that the access is already sorted by. */
  readonly id: "r.id" | "s.rowid";
  readonly from: string;
  readonly where: readonly string[];
  readonly parameters: Parameters;
}

/** Ids, both inclusive, and how to look for matches among them. */
interface SearchedIds {
  readonly access: Access;
  readonly low: number;
  readonly high: number;
}

/**
 * One selection as SQL. The access path is chosen for each segment; what it finds is always verified, for which the
 * connection needs the SQL function `topic_matches`.
 */
export class RecordSearch {
  readonly order: "asc" | "desc";
  readonly #prepared: (sql: string) => StatementSync;
  readonly #selection: RecordSelection;
  readonly #conditions: readonly string[];
  readonly #parameters: Parameters;
  /** Trigrams of all matches; none when the filter is absent or too short. */
  readonly #trigrams: readonly string[];
  #chosen: { readonly segment: number; readonly query: string } | null = null;
  readonly #index: BlockIndex | null;
  /** What the index found last in a block, ascending. */
  #found: { readonly block: number; readonly ids: readonly number[] } | null = null;

  constructor(
    prepared: (sql: string) => StatementSync,
    selection: RecordSelection,
    pattern: TopicPattern | null,
  ) {
    this.#prepared = prepared;
    this.#selection = selection;
    this.order = selection.order;
    const { conditions, parameters } = conditionsOf(selection, pattern);
    this.#conditions = conditions;
    this.#parameters = parameters;
    this.#trigrams = trigramsOf(selection.filter ?? "");
    this.#index = indexOf(selection, pattern);
  }

  /** How many records of the part match, counted up to `most`. */
  count(part: SegmentPart, most: number): number {
    if (part.whole && this.#holdsAll(part.segment)) return Math.min(part.segment.records, most);
    let records = 0;
    for (const ids of this.#searched(part, "asc")) {
      records += this.#countOf(ids, most - records);
      if (records >= most) break;
    }
    return records;
  }

  #countOf(ids: SearchedIds, most: number): number {
    const { sql, parameters } = this.#select(ids);
    const counted = this.#prepared(`SELECT count(*) AS records FROM (${sql} LIMIT :most)`);
    return Number(counted.get({ ...parameters, most })?.records);
  }

  /** The id of the match that comes after `offset` others in the given order. */
  idAt(part: SegmentPart, order: "asc" | "desc", offset: number): number | null {
    return this.#ids(part, order, 1, offset)[0] ?? null;
  }

  /** The matches of the part in order, one at a time. */
  *records(part: SegmentPart, skip: number, most: number): Generator<DataRecord> {
    const record = this.#prepared(
      "SELECT id, timestamp, device_id, topic, is_text, payload FROM records WHERE id = ?",
    );
    let { low, high } = part;
    let left = most;
    let toSkip = skip;
    while (left > 0 && low <= high) {
      const ids = this.#ids({ ...part, low, high }, this.order, Math.min(left, readAhead), toSkip);
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

  /** Ids first, so that a sort does not load payloads. */
  #ids(part: SegmentPart, order: "asc" | "desc", limit: number, offset: number): number[] {
    const ids: number[] = [];
    let toSkip = offset;
    for (const searched of this.#searched(part, order)) {
      const isOnly = searched.low === part.low && searched.high === part.high;
      const skipped = toSkip === 0 || isOnly ? toSkip : this.#countOf(searched, toSkip);
      if (skipped === toSkip) {
        const { sql, parameters } = this.#select(searched);
        const { id } = searched.access;
        const statement = this.#prepared(`${sql} ORDER BY ${id} ${order} LIMIT :limit OFFSET :offset`);
        const rows = statement.all({ ...parameters, limit: limit - ids.length, offset: toSkip });
        ids.push(...rows.map((row) => Number(row.id)));
        if (ids.length === limit) break;
      }
      toSkip -= skipped;
    }
    return ids;
  }

  #select({ access, low, high }: SearchedIds) {
    const where = [...access.where, ...this.#conditions].join(" AND ");
    return {
      sql: `SELECT ${access.id} AS id FROM ${access.from} WHERE ${where}`,
      parameters: { ...this.#parameters, ...access.parameters, low, high },
    };
  }

  /** The part in that order: whole, or by the blocks of an index. */
  *#searched(part: SegmentPart, order: "asc" | "desc"): Generator<SearchedIds> {
    const { low, high } = part;
    const index = this.#index;
    const isIndexed = this.#trigrams.length > 0 && part.segment.searchable;
    if (index !== null && (!isIndexed || this.#isShort(index, part))) {
      for (const range of blocksBetween(low, high, order)) {
        if (index.isSorted) yield { ...range, access: throughIndex(index, range) };
        else yield* this.#candidates(index, range, order);
      }
    } else yield { low, high, access: isIndexed ? this.#throughSearchTable(part) : everything };
  }

  /** The ids of a block that an index has in another order, some at a time. */
  *#candidates(
    index: BlockIndex,
    { block, low, high }: BlockRange,
    order: "asc" | "desc",
  ): Generator<SearchedIds> {
    const ids = this.#idsIn(index, block).filter((id) => id >= low && id <= high);
    if (order === "desc") ids.reverse();
    for (let at = 0; at < ids.length; at += candidatesAtATime) {
      const some = ids.slice(at, at + candidatesAtATime);
      const ends = [some[0] ?? low, some.at(-1) ?? high];
      yield { low: Math.min(...ends), high: Math.max(...ends), access: throughIds(some) };
    }
  }

  #throughSearchTable({ segment: { number } }: SegmentPart): Access {
    const table = searchTable(number);
    return {
      id: "s.rowid",
      from: `${table} AS s CROSS JOIN records AS r ON r.id = s.rowid`,
      where: [`${table} MATCH :trigrams`, "s.rowid BETWEEN :low AND :high"],
      parameters: { trigrams: this.#searchQuery(number) },
    };
  }

  /** The trigrams to look up in a segment: two rare ones alone are faster than with common ones. */
  #searchQuery(segment: number): string {
    if (this.#chosen?.segment === segment) return this.#chosen.query;
    const table = searchTable(segment);
    const counted = this.#prepared(
      `SELECT count(*) AS hits FROM (SELECT 1 FROM ${table} WHERE ${table} MATCH ? LIMIT ${commonTrigram})`,
    );
    const rare = this.#trigrams
      .map((trigram) => ({ trigram, hits: Number(counted.get(trigram)?.hits) }))
      .filter(({ hits }) => hits < commonTrigram)
      .sort((a, b) => a.hits - b.hits)
      .map(({ trigram }) => trigram);
    const query = (rare.length > 0 ? rare.slice(0, 2) : this.#trigrams).join(" AND ");
    this.#chosen = { segment, query };
    return query;
  }

  /** Whether the index alone finds few records of the part. */
  #isShort({ name, keys }: BlockIndex, { low, high }: SegmentPart): boolean {
    let records = 0;
    for (const { where, parameters } of keys) {
      const counted = this.#prepared(`
        SELECT count(*) AS records FROM (SELECT 1 FROM records AS r INDEXED BY ${name}
          WHERE ${blockInSql("r.id")} = :block AND ${where} AND r.id BETWEEN :low AND :high LIMIT :few)`);
      for (const range of blocksBetween(low, high, "asc"))
        records += Number(counted.get({ ...parameters, ...range, few: fewRecords })?.records);
    }
    return records < fewRecords;
  }

  #idsIn({ name, keys }: BlockIndex, block: number): readonly number[] {
    if (this.#found?.block !== block) {
      const found = keys.flatMap(({ where, parameters }) =>
        this.#prepared(
          `SELECT r.id FROM records AS r INDEXED BY ${name} WHERE ${blockInSql("r.id")} = :block AND ${where}`,
        ).all({ ...parameters, block }),
      );
      this.#found = { block, ids: found.map(({ id }) => Number(id)).sort((a, b) => a - b) };
    }
    return this.#found.ids;
  }

  /** Whether all of the segment matches. */
  #holdsAll(segment: Segment): boolean {
    const { deviceId, filter } = this.#selection;
    return deviceId === undefined && filter === undefined && isWithin(segment, this.#selection);
  }
}

const everything: Access = {
  id: "r.id",
  from: "records AS r",
  where: ["r.id BETWEEN :low AND :high"],
  parameters: {},
};

/** The index that has few records beside the matches, if one has. */
function indexOf({ deviceId }: RecordSelection, pattern: TopicPattern | null): BlockIndex | null {
  if (deviceId === undefined) return null;
  if (pattern === null || pattern.range?.from === topicsOf(deviceId).from) {
    const keys = [{ where: "r.device_id = :key", parameters: { key: deviceId } }];
    return { name: "records_by_device", keys, isSorted: true };
  }
  const { exact, range } = pattern;
  const keys: IndexKeys[] = [];
  if (exact !== null) keys.push({ where: "r.topic = :key", parameters: { key: exact } });
  if (range !== null)
    keys.push({
      where: "r.topic >= :from AND r.topic < :to",
      parameters: { from: range.from, to: range.to },
    });
  return { name: "records_by_topic", keys, isSorted: range === null };
}

function throughIndex({ name }: BlockIndex, { block }: BlockRange): Access {
  return {
    id: "r.id",
    from: `records AS r INDEXED BY ${name}`,
    where: [`${blockInSql("r.id")} = :block`, "r.id BETWEEN :low AND :high"],
    parameters: { block },
  };
}

function throughIds(ids: readonly number[]): Access {
  return {
    id: "r.id",
    from: "json_each(:ids) AS c CROSS JOIN records AS r ON r.id = c.value",
    where: ["r.id BETWEEN :low AND :high"],
    parameters: { ids: JSON.stringify(ids) },
  };
}

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
    // As bytes: exact for UTF-8, and a NUL does not end the payload.
    conditions.push(
      "(instr(CAST(r.topic AS BLOB), :needle) > 0 OR (r.is_text = 1 AND instr(r.payload, :needle) > 0))",
    );
    parameters.needle = Buffer.from(filter);
  }
  return { conditions, parameters };
}

/** Trigrams of the filter, each as an FTS5 query; none below three characters. */
function trigramsOf(filter: string): readonly string[] {
  const characters = [...filter];
  const trigrams = new Set<string>();
  for (let at = 0; at + 3 <= characters.length; at++) trigrams.add(characters.slice(at, at + 3).join(""));
  const stride = Math.ceil(trigrams.size / maxTrigrams);
  return [...trigrams]
    .filter((_, at) => at % stride === 0)
    .map((trigram) => `"${trigram.replaceAll('"', '""')}"`);
}

/** A record of a row with all columns but those of its delivery. */
export function recordOf(row: Record<string, unknown>): DataRecord {
  return dataRecord(Number(row.id), {
    timestamp: Number(row.timestamp),
    deviceId: String(row.device_id),
    topic: String(row.topic),
    payload: row.payload as Uint8Array,
    encoding: row.is_text === 1 ? "text" : "base64",
  });
}
