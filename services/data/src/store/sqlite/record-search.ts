import type { SQLInputValue, StatementSync } from "node:sqlite";
import type { DataRecord } from "@devmesh/contracts/model/data-record";
import { dataRecord, type RecordSelection } from "../data-store.ts";
import type { TopicPattern } from "../topic-filter.ts";
import { type Segment, searchTable } from "./schema.ts";
import { isWithin, type SegmentPart } from "./segment-part.ts";

/** A device with fewer records in a segment is read through; otherwise the search table is used. */
const fewRecords = 2_000;
/** A topic filter with at most so many matches is answered from the index of topics. */
const fewMatches = 20_000;
/** Matches of one look-up. */
const readAhead = 1_000;
/** A trigram is common when so many records of a segment have it. */
const commonTrigram = 512;
/** More trigrams do not make a search more precise. */
const maxTrigrams = 24;

type Parameters = Record<string, SQLInputValue>;

/** Where to look, as SQL: the tables with the index to use, and its conditions. */
interface Access {
  /** The column of the record's id that the access is already sorted by. */
  readonly id: "r.id" | "s.rowid";
  readonly from: string;
  readonly where: readonly string[];
  readonly parameters: Parameters;
}

/**
 * One selection as SQL. The access path is chosen for each segment; what it finds is always verified, for which the
 * connection needs the SQL function `topic_matches`.
 */
export class RecordSearch {
  readonly order: "asc" | "desc";
  readonly #prepared: (sql: string) => StatementSync;
  readonly #selection: RecordSelection;
  readonly #pattern: TopicPattern | null;
  readonly #conditions: readonly string[];
  readonly #parameters: Parameters;
  /** Trigrams of all matches; none when the filter is absent or too short. */
  readonly #trigrams: readonly string[];
  #chosen: { readonly segment: number; readonly query: string } | null = null;
  /** Ids of all records in the pattern's range, ascending, when these are few. */
  readonly #candidates: readonly number[] | null;

  constructor(
    prepared: (sql: string) => StatementSync,
    selection: RecordSelection,
    pattern: TopicPattern | null,
  ) {
    this.#prepared = prepared;
    this.#selection = selection;
    this.#pattern = pattern;
    this.order = selection.order;
    const { conditions, parameters } = conditionsOf(selection, pattern);
    this.#conditions = conditions;
    this.#parameters = parameters;
    this.#trigrams = trigramsOf(selection.filter ?? "");
    this.#candidates = pattern?.range ? this.#findCandidates(pattern) : null;
  }

  /** How many records of the part match, counted up to `most`. */
  count(part: SegmentPart, most: number): number {
    if (part.whole && this.#holdsAll(part.segment)) return Math.min(part.segment.records, most);
    const { sql, parameters } = this.#select(this.#access(part), part);
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
    const access = this.#access(part);
    const { sql, parameters } = this.#select(access, part);
    const statement = this.#prepared(`${sql} ORDER BY ${access.id} ${order} LIMIT :limit OFFSET :offset`);
    return statement.all({ ...parameters, limit, offset }).map((row) => Number(row.id));
  }

  #select(access: Access, part: SegmentPart) {
    const where = [...access.where, ...this.#conditions].join(" AND ");
    return {
      sql: `SELECT ${access.id} AS id FROM ${access.from} WHERE ${where}`,
      parameters: { ...this.#parameters, ...access.parameters, low: part.low, high: part.high },
    };
  }

  #access(part: SegmentPart): Access {
    if (this.#candidates !== null) return this.#throughCandidates(this.#candidates, part);
    const narrow = this.#throughIndex();
    if (this.#trigrams.length === 0 || !part.segment.searchable) return narrow ?? everything;
    if (narrow !== null && this.#isShort(narrow, part)) return narrow;
    const table = searchTable(part.segment.number);
    return {
      id: "s.rowid",
      from: `${table} AS s CROSS JOIN records AS r ON r.id = s.rowid`,
      where: [`${table} MATCH :trigrams`, "s.rowid BETWEEN :low AND :high"],
      parameters: { trigrams: this.#searchQuery(part.segment.number) },
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

  #throughIndex(): Access | null {
    const where = ["r.id BETWEEN :low AND :high"];
    if (this.#pattern?.exact && this.#pattern.range === null) {
      return { id: "r.id", from: "records AS r INDEXED BY records_by_topic", where, parameters: {} };
    }
    if (this.#selection.deviceId === undefined) return null;
    return { id: "r.id", from: "records AS r INDEXED BY records_by_device", where, parameters: {} };
  }

  #throughCandidates(candidates: readonly number[], { low, high }: SegmentPart): Access {
    const ids = candidates.filter((id) => id >= low && id <= high);
    return {
      id: "r.id",
      from: "json_each(:ids) AS c CROSS JOIN records AS r ON r.id = c.value",
      where: ["r.id BETWEEN :low AND :high"],
      parameters: { ids: JSON.stringify(ids) },
    };
  }

  /** Whether the index alone finds few records of the part. */
  #isShort(access: Access, { low, high }: SegmentPart): boolean {
    const topic = this.#pattern?.exact && this.#pattern.range === null ? this.#pattern.exact : null;
    const condition = topic === null ? "r.device_id = :key" : "r.topic = :key";
    const row = this.#prepared(
      `SELECT count(*) AS records FROM (SELECT 1 FROM ${access.from} WHERE ${condition} AND r.id BETWEEN :low AND :high LIMIT :few)`,
    ).get({ key: topic ?? this.#selection.deviceId ?? "", low, high, few: fewRecords });
    return Number(row?.records) < fewRecords;
  }

  #findCandidates({ exact, range }: TopicPattern): readonly number[] | null {
    if (range === null) return null;
    const inRange = this.#prepared(
      "SELECT id FROM records INDEXED BY records_by_topic WHERE topic >= ? AND topic < ? LIMIT ?",
    ).all(range.from, range.to, fewMatches + 1);
    if (inRange.length > fewMatches) return null;
    const equal =
      exact === null
        ? []
        : this.#prepared("SELECT id FROM records INDEXED BY records_by_topic WHERE topic = ? LIMIT ?").all(
            exact,
            fewMatches + 1,
          );
    if (inRange.length + equal.length > fewMatches) return null;
    return [...inRange, ...equal].map((row) => Number(row.id)).sort((a, b) => a - b);
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
