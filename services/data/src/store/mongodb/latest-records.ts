import type { DataStore, RecordPage } from "../data-store.ts";
import type { FairQueue } from "../fair-queue.ts";
import { type TopicRange, topicsAfter, topicsOf } from "../topic-filter.ts";
import { type Collections, type RecordDocument, recordIndexes } from "./collections.ts";
import { recordOf } from "./record-pages.ts";
import type { Writer } from "./writer.ts";

type LatestMethods = Pick<DataStore, "readLatest" | "countTopics">;

/** Finds the newest records of topics by two commands for each of them, which the index of topics answers. */
export function createLatestRecords(
  { run, records }: Collections,
  writer: Writer,
  queue: FairQueue,
): LatestMethods {
  const byTopic = { hint: recordIndexes.topic, batchSize: 1 } as const;

  /** A command has its own timeout: a caller that goes away keeps its permit until the server is done. */
  async function* topics(
    { from, to }: TopicRange,
    visible: number,
    caller: string,
    signal: AbortSignal,
  ): AsyncGenerator<string> {
    for (let after = from; ; ) {
      const found = await queue.run(caller, signal, () =>
        run((options) =>
          records.findOne(
            { topic: { $gt: after, $lt: to }, _id: { $lte: visible } },
            { ...options, ...byTopic, sort: { topic: 1, _id: 1 }, projection: { topic: 1 } },
          ),
        ),
      );
      if (found?.topic === undefined) return;
      yield found.topic;
      after = found.topic;
    }
  }

  return {
    async readLatest(deviceId, { caller, limit, after, maxBytes }, signal) {
      const range = topicsAfter(deviceId, after);
      const visible = await writer.visible(signal);
      const items: RecordPage["items"] = [];
      let bytes = 0;
      for await (const topic of topics(range, visible, caller, signal)) {
        const next = items.at(-1)?.topic ?? null;
        if (items.length === limit) return { next, items };
        const newest = await queue.run(caller, signal, () =>
          run((options) =>
            records.findOne<RecordDocument>(
              { topic, _id: { $lte: visible } },
              { ...options, ...byTopic, sort: { topic: -1, _id: -1 } },
            ),
          ),
        );
        // Retention may have deleted it since.
        if (newest === null) continue;
        const record = recordOf(newest);
        bytes += Buffer.byteLength(JSON.stringify(record)) + 1;
        if (bytes > maxBytes && items.length > 0) return { next, items };
        items.push(record);
      }
      return { next: null, items };
    },
    async countTopics(deviceId, { caller, most }, signal) {
      const visible = await writer.visible(signal);
      let count = 0;
      for await (const _ of topics(topicsOf(deviceId), visible, caller, signal)) if (++count >= most) break;
      return count;
    },
  };
}
