import type { MailSlotStore } from "./mail-slots.ts";
import { type CollectionDeclaration, type MongoStore, unlessDuplicate } from "./mongodb.ts";

interface MailWindowDocument {
  /** The window's name. */
  readonly _id: string;
  /** When its slots were taken; 0 for one that was given back. The next one taken removes those that expired. */
  readonly taken: readonly number[];
  /** The latest of `taken`, or later: the whole window may go once this has expired. */
  readonly last_taken: number;
}

/** The collection of mail slots. */
export const mailWindowCollection = {
  name: "mail_windows",
  indexes: [{ name: "by_age", key: { last_taken: 1 } }],
} as const satisfies CollectionDeclaration;

/** The adapter's query; exported so that a test can check its plan. */
export function expiredWindows(before: number) {
  return { last_taken: { $lt: before } };
}

/** Mail slots in MongoDB. */
export function createMongoMailSlotStore({ db, run }: MongoStore): MailSlotStore {
  const windows = db.collection<MailWindowDocument>(mailWindowCollection.name);

  return {
    async take(window, limit, since, now, signal) {
      const counted = { $filter: { input: "$taken", cond: { $gt: ["$$this", since] } } };
      const after = {
        $cond: [
          { $lt: [{ $size: "$$counted" }, limit] },
          { $concatArrays: ["$$counted", [now]] },
          "$$counted",
        ],
      };
      const update = [
        {
          $set: {
            taken: { $let: { vars: { counted }, in: after } },
            last_taken: { $max: ["$last_taken", now] },
          },
        },
      ];
      for (;;) {
        // The document before the update shows what the database decided: it counted the same.
        const before = await run(signal, () =>
          windows.findOneAndUpdate({ _id: window }, update, { returnDocument: "before" }),
        );
        if (before !== null) return before.taken.filter((at) => at > since).length < limit;
        // Separate from taking: an upsert that meets another one does not return the document before it.
        const empty = { _id: window, taken: [], last_taken: now };
        await unlessDuplicate(run(signal, () => windows.insertOne(empty)));
      }
    },
    async giveBack(window, takenAt, signal) {
      await run(signal, () => windows.updateOne({ _id: window, taken: takenAt }, { $set: { "taken.$": 0 } }));
    },
    async prune(before, signal) {
      await run(signal, () => windows.deleteMany(expiredWindows(before)));
    },
  };
}
