import type { Filter } from "mongodb";
import { type DataStore, type FollowedRecords, InvalidCursor, maxFollowed } from "../data-store.ts";
import type { FairQueue } from "../fair-queue.ts";
import { followedTopics } from "../topic-filter.ts";
import {
  type Collections,
  isRecord,
  type RecordDocument,
  recordIndexes,
  type StoredDocument,
} from "./collections.ts";
import { recordOf } from "./record-pages.ts";
import type { Writer } from "./writer.ts";

/** Reads on in the order of storing, by ids that are final. */
export function createRecordFollowing(
  { run, records }: Collections,
  writer: Writer,
  queue: FairQueue,
): Pick<DataStore, "follow"> {
  return {
    async follow({ caller, after, topics, deviceIds, limit, maxBytes }, signal) {
      const visible = await writer.visible(signal);
      if (after === null) return { records: [], next: visible, atEnd: true };
      if (after > visible) throw new InvalidCursor("beyond the last record");
      const rest = { _id: { $gt: after, $lte: visible } };
      const [bound] = await queue.run(caller, signal, () =>
        run((options) =>
          records
            .find(rest, { ...options, hint: recordIndexes.id })
            .project<{ _id: number }>({ _id: 1 })
            .sort({ _id: 1 })
            .skip(maxFollowed - 1)
            .limit(1)
            .toArray(),
        ),
      );
      const to = bound?._id ?? visible;
      const wanted: Filter<StoredDocument> = {
        _id: { $gt: after, $lte: to },
        ...isRecord,
        ...(deviceIds !== undefined && { device: { $in: [...deviceIds] } }),
        ...(topics !== undefined && {
          $or: followedTopics(topics).expressions.map(($regex) => ({ topic: { $regex } })),
        }),
      };
      // A page of the largest records is read in parts, since it is cut by bytes.
      const found: FollowedRecords["records"] = [];
      let bytes = 0;
      let next = after;
      for (;;) {
        const most = Math.min(partSize, limit - found.length);
        if (most === 0) return { records: found, next, atEnd: false };
        const part = await queue.run(caller, signal, () =>
          run((options) =>
            records
              .find({ ...wanted, _id: { $gt: next, $lte: to } }, { ...options, hint: recordIndexes.id })
              .project<RecordDocument>({ stream: 0, sequence: 0, weight: 0 })
              .sort({ _id: 1 })
              .limit(most)
              .toArray(),
          ),
        );
        for (const record of part.map(recordOf)) {
          bytes += Buffer.byteLength(JSON.stringify(record)) + 1;
          if (bytes > maxBytes && found.length > 0) return { records: found, next, atEnd: false };
          found.push(record);
          next = record.id;
        }
        if (part.length < most) return { records: found, next: to, atEnd: to === visible };
      }
    },
  };
}

/** Records of one command. */
const partSize = 500;
