import { emptyColumns } from "@devmesh/contracts/model/record-columns";
import type { Filter } from "mongodb";
import { type DataStore, FollowedPage, InvalidCursor, maxFollowed } from "../data-store.ts";
import type { FairQueue } from "../fair-queue.ts";
import { followedTopics } from "../topic-filter.ts";
import {
  type Collections,
  isRecord,
  type RecordDocument,
  recordIndexes,
  type StoredDocument,
} from "./collections.ts";
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
      if (after === null) return { records: emptyColumns(), next: visible, atEnd: true };
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
      const page = new FollowedPage({ limit, maxBytes });
      let next = after;
      for (;;) {
        const { records: found } = page;
        const most = Math.min(partSize, limit - found.ids.length);
        if (most === 0) return { records: found, next, atEnd: false };
        const part = await queue.run(caller, signal, () =>
          run((options) =>
            records
              .find({ ...wanted, _id: { $gt: next, $lte: to } }, { ...options, hint: recordIndexes.id })
              .project<RecordDocument>({ stream: 0, sequence: 0, weight: 0, device: 0 })
              .sort({ _id: 1 })
              .limit(most)
              .toArray(),
          ),
        );
        for (const { _id, time, topic, text = "", payload } of part) {
          const record = { time: time.getTime(), topic, payload: payload?.value() ?? text };
          if (!page.add(_id, record)) return { records: found, next, atEnd: false };
          next = _id;
        }
        if (part.length < most) return { records: found, next: to, atEnd: to === visible };
      }
    },
  };
}

/** Records of one command. */
const partSize = 500;
