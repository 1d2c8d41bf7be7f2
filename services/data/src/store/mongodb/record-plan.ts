import type { Filter, Sort } from "mongodb";
import type { RecordSelection } from "../data-store.ts";
import { type TopicPattern, topicPattern } from "../topic-filter.ts";
import { type CallOptions, type Collections, recordIndexes, type StoredDocument } from "./collections.ts";
import { shortestSearched } from "./signature.ts";

/** How a selection is found, always by an index that yields record ids in order. */
export interface RecordPlan {
  /** Besides the bounds of the record id. */
  readonly conditions: Filter<StoredDocument>;
  readonly index: string;
  /** Members of the index before the record id; the conditions fix each of them. */
  readonly fixed: readonly ("device" | "topic")[];
  /** Whether all that the index finds matches. Otherwise it is read run by run, so that a search can be interrupted. */
  readonly exact: boolean;
  /** A substring for the search index. */
  readonly searched: string | null;
  readonly since: Date | null;
  readonly until: Date | null;
  /** A topic filter with wildcards: looked up first, since its matches may be few. */
  readonly pattern: TopicPattern | null;
}

/** Plans a selection. */
export function planOf({ deviceId, topic, filter, since, until }: RecordSelection): RecordPlan {
  const pattern = deviceId === undefined || topic === undefined ? null : topicPattern(deviceId, topic);
  const onTopic = pattern !== null && pattern.range === null;
  const conditions: Filter<StoredDocument>[] = [];
  if (deviceId !== undefined && !onTopic) conditions.push({ device: deviceId });
  if (pattern !== null) conditions.push(topicCondition(pattern));
  // A void has neither device nor topic.
  if (deviceId === undefined) conditions.push({ void: { $exists: false } });
  if (since !== undefined || until !== undefined) {
    const bounds = {
      ...(since === undefined ? {} : { $gte: new Date(since) }),
      ...(until === undefined ? {} : { $lt: new Date(until) }),
    };
    conditions.push({ time: bounds });
  }
  if (filter !== undefined) {
    const $regex = literal(filter);
    conditions.push({ $or: [{ topic: { $regex } }, { text: { $regex } }] });
  }
  const [index, fixed] = wayIn(deviceId, onTopic);
  return {
    conditions: conditions.length === 1 ? (conditions[0] ?? {}) : { $and: conditions },
    index,
    fixed,
    exact:
      filter === undefined && since === undefined && until === undefined && (pattern === null || onTopic),
    searched: filter !== undefined && filter.length >= shortestSearched ? filter : null,
    since: since === undefined ? null : new Date(since),
    until: until === undefined ? null : new Date(until),
    pattern: onTopic ? null : pattern,
  };
}

/** The order of record ids that the plan's index has, forwards or backwards. */
export function sortOf({ fixed }: Pick<RecordPlan, "fixed">, order: "asc" | "desc"): Sort {
  const direction = order === "asc" ? 1 : -1;
  return Object.fromEntries([...fixed, "_id"].map((member) => [member, direction]));
}

function wayIn(deviceId: string | undefined, onTopic: boolean): [string, readonly ("device" | "topic")[]] {
  if (onTopic) return [recordIndexes.topic, ["topic"]];
  return deviceId === undefined ? [recordIndexes.id, []] : [recordIndexes.device, ["device"]];
}

function topicCondition({ exact, range, rangeIsExact, expression }: TopicPattern): Filter<StoredDocument> {
  const ways: Filter<StoredDocument>[] = [];
  if (exact !== null) ways.push({ topic: exact });
  if (range !== null) {
    const bounds = { $gte: range.from, $lt: range.to };
    ways.push({ topic: rangeIsExact ? bounds : { ...bounds, $regex: expression } });
  }
  return ways.length === 1 ? (ways[0] ?? {}) : { $or: ways };
}

/** A regular expression that matches this text alone. */
function literal(text: string): string {
  return text.replace(/[!-/:-@[-`{-~]/g, "\\$&");
}

/** The most matches of a topic filter that are looked up first. */
const fewMatches = 20_000;

/** Ids of all records whose topic matches, ascending; null when these are too many. Reads the index of topics alone. */
export async function idsOnTopics(
  { records }: Collections,
  { exact, range, matches }: TopicPattern,
  options: CallOptions,
): Promise<number[] | null> {
  const ids: number[] = [];
  for (const topic of [exact, range === null ? null : { $gte: range.from, $lt: range.to }]) {
    if (topic === null) continue;
    const found = await records
      .find({ topic }, { ...options, hint: recordIndexes.topic, batchSize: 5_000 })
      .project<{ _id: number; topic: string }>({ topic: 1 })
      .limit(fewMatches + 1 - ids.length)
      .toArray();
    for (const record of found) if (matches(record.topic)) ids.push(record._id);
    if (found.length > fewMatches || ids.length > fewMatches) return null;
  }
  return ids.sort((a, b) => a - b);
}
