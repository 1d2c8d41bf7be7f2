import type { DatabaseSync } from "node:sqlite";
import type { LatestRequest, RecordPage } from "../data-store.ts";
import type { TopicRange } from "../topic-filter.ts";
import { inOneState } from "./one-state.ts";
import { recordOf } from "./record-search.ts";
import { blockInSql, blocksBetween, readSegments, tailOf } from "./schema.ts";

/**
 * The newest record of each topic: from the list of topics, and in the newest segment, which is not listed, by its
 * index.
 */
export interface LatestRecords {
  /** The newest record of each topic in the range; its lower end is exclusive. */
  readLatest(range: TopicRange, page: Pick<LatestRequest, "limit" | "maxBytes">): RecordPage;
  countTopics(range: TopicRange, most: number): number;
}

/** Reads on a connection that nothing else uses at that time. */
export function createLatestRecords(db: DatabaseSync): LatestRecords {
  const nextListed = db.prepare(
    "SELECT topic FROM topics WHERE topic > ? AND topic < ? ORDER BY topic LIMIT 1",
  );
  const nextInBlock = db.prepare(`
    SELECT topic FROM records INDEXED BY records_by_topic
    WHERE ${blockInSql("id")} = ? AND topic > ? AND topic < ? ORDER BY topic LIMIT 1`);
  const columns = "id, timestamp, device_id, topic, is_text, payload";
  const newestInBlock = db.prepare(`
    SELECT ${columns} FROM records INDEXED BY records_by_topic
    WHERE ${blockInSql("id")} = ? AND topic = ? ORDER BY id DESC LIMIT 1`);
  const newestListed = db.prepare(
    `SELECT ${columns} FROM records WHERE id = (SELECT newest FROM topics WHERE topic = ?)`,
  );

  /** The blocks of the newest segment, while it is not listed; the newest first. */
  function unlistedBlocks(): readonly number[] {
    const tail = tailOf(readSegments(db));
    if (tail === null) return [];
    return [...blocksBetween(tail.first_id, tail.last_id, "desc")].map(({ block }) => block);
  }

  function* topics({ from, to }: TopicRange, blocks: readonly number[]): Generator<string> {
    for (let after = from; ; ) {
      const next = [nextListed.get(after, to), ...blocks.map((block) => nextInBlock.get(block, after, to))]
        .flatMap((row) => (row === undefined ? [] : [String(row.topic)]))
        .reduce<string | null>(
          (least, topic) => (least === null || isBefore(topic, least) ? topic : least),
          null,
        );
      if (next === null) return;
      yield next;
      after = next;
    }
  }

  function newestOf(topic: string, blocks: readonly number[]) {
    for (const block of blocks) {
      const row = newestInBlock.get(block, topic);
      if (row !== undefined) return row;
    }
    return newestListed.get(topic);
  }

  return {
    readLatest: (range, { limit, maxBytes }) =>
      inOneState(db, () => {
        const blocks = unlistedBlocks();
        const items: RecordPage["items"] = [];
        let bytes = 0;
        for (const topic of topics(range, blocks)) {
          const next = items.at(-1)?.topic ?? null;
          if (items.length === limit) return { next, items };
          const row = newestOf(topic, blocks);
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
        for (const _ of topics(range, unlistedBlocks())) if (++count >= most) break;
        return count;
      }),
  };
}

/** Compares by bytes, as SQLite does. */
function isBefore(one: string, other: string): boolean {
  return Buffer.compare(Buffer.from(one), Buffer.from(other)) < 0;
}
