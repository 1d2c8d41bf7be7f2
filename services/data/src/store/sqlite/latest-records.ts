import type { DatabaseSync } from "node:sqlite";
import type { LatestRequest, RecordPage } from "../data-store.ts";
import type { TopicRange } from "../topic-filter.ts";
import { inOneState } from "./one-state.ts";
import { recordOf } from "./record-search.ts";

/** Finds the newest records of topics by two look-ups in the index of topics for each of them. */
export interface LatestRecords {
  /** The newest record of each topic in the range; its lower end is exclusive. */
  readLatest(range: TopicRange, page: Pick<LatestRequest, "limit" | "maxBytes">): RecordPage;
  countTopics(range: TopicRange, most: number): number;
}

/** Reads on a connection that nothing else uses at that time. */
export function createLatestRecords(db: DatabaseSync): LatestRecords {
  const nextTopic = db.prepare(`
    SELECT topic FROM records INDEXED BY records_by_topic WHERE topic > ? AND topic < ? ORDER BY topic LIMIT 1`);
  const newest = db.prepare(`
    SELECT id, timestamp, device_id, topic, is_text, payload FROM records INDEXED BY records_by_topic
    WHERE topic = ? ORDER BY id DESC LIMIT 1`);

  function* topics({ from, to }: TopicRange): Generator<string> {
    let topic = nextTopic.get(from, to)?.topic;
    while (topic !== undefined) {
      yield String(topic);
      topic = nextTopic.get(topic, to)?.topic;
    }
  }

  return {
    readLatest: (range, { limit, maxBytes }) =>
      inOneState(db, () => {
        const items: RecordPage["items"] = [];
        let bytes = 0;
        for (const topic of topics(range)) {
          const next = items.at(-1)?.topic ?? null;
          if (items.length === limit) return { next, items };
          const row = newest.get(topic);
          if (row === undefined) continue;
          const record = recordOf(row);
          bytes += Buffer.byteLength(JSON.stringify(record)) + 1;
          if (bytes > maxBytes && items.length > 0) return { next, items };
          items.push(record);
        }
        return { next: null, items };
      }),
    countTopics: (range, most) =>
      inOneState(db, () => {
        let count = 0;
        for (const _ of topics(range)) if (++count >= most) break;
        return count;
      }),
  };
}
