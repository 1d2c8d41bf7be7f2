import type { DatabaseSync } from "node:sqlite";
import { type FollowedRecords, type FollowRequest, InvalidCursor, maxFollowed } from "../data-store.ts";
import { followedTopics } from "../topic-filter.ts";
import { inOneState } from "./one-state.ts";
import { recordOf } from "./record-search.ts";

/** Reads on in the order of storing. */
export interface RecordFollowing {
  /** Null where `after` is beyond the last record id. */
  follow(request: Omit<FollowRequest, "caller">): FollowedRecords | null;
}

/** Reads on a connection that nothing else uses at that time. */
export function createRecordFollowing(db: DatabaseSync): RecordFollowing {
  const lastId = db.prepare("SELECT id FROM last_record");
  const addresses = db.prepare("SELECT id, device_id, topic FROM records WHERE id > ? ORDER BY id LIMIT ?");
  const record = db.prepare(
    "SELECT id, timestamp, device_id, topic, is_text, payload FROM records WHERE id = ?",
  );

  function read({ after, topics, deviceIds, limit, maxBytes }: Omit<FollowRequest, "caller">) {
    const end = Number(lastId.get()?.id);
    if (after === null) return { records: [], next: end, atEnd: true };
    if (after > end) return null;
    const wantedTopics = topics === undefined ? null : followedTopics(topics);
    const wantedIds = deviceIds === undefined ? null : new Set(deviceIds);
    const records: FollowedRecords["records"] = [];
    let bytes = 0;
    let seen = 0;
    let next = after;
    for (const { id, device_id, topic } of addresses.iterate(after, maxFollowed)) {
      seen++;
      const isWanted =
        wantedIds?.has(String(device_id)) !== false && wantedTopics?.matches(String(topic)) !== false;
      const row = isWanted ? record.get(Number(id)) : undefined;
      if (row !== undefined) {
        const found = recordOf(row);
        bytes += Buffer.byteLength(JSON.stringify(found)) + 1;
        if (records.length === limit || (bytes > maxBytes && records.length > 0))
          return { records, next, atEnd: false };
        records.push(found);
      }
      next = Number(id);
    }
    return seen < maxFollowed ? { records, next: end, atEnd: true } : { records, next, atEnd: false };
  }

  return { follow: (request) => inOneState(db, () => read(request)) };
}

/** What a reading thread found; an error's class does not survive the way from it. */
export function followedOf(found: FollowedRecords | null): FollowedRecords {
  if (found === null) throw new InvalidCursor("beyond the last record");
  return found;
}
