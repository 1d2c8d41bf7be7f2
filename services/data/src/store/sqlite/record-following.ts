import type { DatabaseSync, StatementSync } from "node:sqlite";
import { emptyColumns } from "@devmesh/contracts/model/record-columns";
import {
  FollowedPage,
  type FollowedRecords,
  type FollowRequest,
  InvalidCursor,
  maxFollowed,
} from "../data-store.ts";
import { followedTopics } from "../topic-filter.ts";
import { inOneState } from "./one-state.ts";

/** Reads on in the order of storing. */
export interface RecordFollowing {
  /** Null where `after` is beyond the last record id. */
  follow(request: Omit<FollowRequest, "caller">): FollowedRecords | null;
}

/** Columns of a row, by {@link rowColumns}. */
type FollowedRow = [id: number, time: number, topic: string, payload: string | Uint8Array];
const rowColumns = "id, timestamp, topic, CASE is_text WHEN 1 THEN CAST(payload AS TEXT) ELSE payload END";

/** Reads on a connection that nothing else uses at that time. */
export function createRecordFollowing(db: DatabaseSync): RecordFollowing {
  const lastId = db.prepare("SELECT id FROM last_record");
  const firstId = db.prepare("SELECT min(id) AS id FROM records WHERE id > ?");
  const prepared = new Map<string, StatementSync>();

  /** Rows in the order of storing, as arrays: of wanted devices, and at least of wanted topics. */
  function rowsOf(
    { topics, deviceIds }: Pick<FollowRequest, "topics" | "deviceIds">,
    after: number,
    to: number,
  ) {
    const conditions: string[] = [];
    const given: string[] = [];
    if (deviceIds !== undefined) {
      // The plus keeps the order of the ids, which an index on devices has not.
      conditions.push("+device_id IN (SELECT value FROM json_each(?))");
      given.push(JSON.stringify(deviceIds));
    }
    if (topics !== undefined) {
      const { names, globs } = followedTopics(topics);
      const ways = [
        ...(names.length > 0 ? [`${nameOfTopic} IN (SELECT value FROM json_each(?))`] : []),
        ...globs.map(() => `${nameOfTopic} GLOB ?`),
      ];
      conditions.push(`(${ways.join(" OR ")})`);
      given.push(...(names.length > 0 ? [JSON.stringify(names)] : []), ...globs);
    }
    const wanted = conditions.map((condition) => ` AND ${condition}`).join("");
    const sql = `SELECT ${rowColumns} FROM records WHERE id > ? AND id <= ?${wanted} ORDER BY id`;
    const statement = prepared.get(sql) ?? db.prepare(sql);
    if (prepared.size < maxPrepared) prepared.set(sql, statement);
    statement.setReturnArrays(true);
    return statement.iterate(after, to, ...given) as unknown as Iterable<FollowedRow>;
  }

  function read(request: Omit<FollowRequest, "caller">): FollowedRecords | null {
    const { after, topics } = request;
    const end = Number(lastId.get()?.id);
    if (after === null) return { records: emptyColumns(), next: end, atEnd: true };
    if (after > end) return null;
    const to = after + maxFollowed;
    const wanted = topics === undefined ? null : followedTopics(topics);
    const isWanted = wanted === null || wanted.globs.length === 0 ? () => true : wanted.matches;
    const page = new FollowedPage(request);
    let next = after;
    for (const [id, time, topic, payload] of rowsOf(request, after, to)) {
      if (isWanted(topic) && !page.add(id, { time, topic, payload }))
        return { records: page.records, next, atEnd: false };
      next = id;
    }
    const following = firstId.get(to)?.id ?? null;
    if (following === null) return { records: page.records, next: end, atEnd: true };
    return { records: page.records, next: Number(following) - 1, atEnd: false };
  }

  return { follow: (request) => inOneState(db, () => read(request)) };
}

/** A record's topic below that of its device, `db/<device id>/`. */
const nameOfTopic = "substr(topic, length(device_id) + 5)";

/** Statements for sets of wanted topics, which differ in their number of patterns. */
const maxPrepared = 50;

/** What a reading thread found; an error's class does not survive the way from it. */
export function followedOf(found: FollowedRecords | null): FollowedRecords {
  if (found === null) throw new InvalidCursor("beyond the last record");
  return found;
}
