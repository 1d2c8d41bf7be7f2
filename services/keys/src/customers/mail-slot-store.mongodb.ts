import { type CollectionDeclaration, isDuplicateKey, type MongoStore } from "@devmesh/store/mongodb";
import type { MailSlotStore } from "./mail-slot-store.ts";

/** A window as it stands in the database; `_id` is its name. */
interface MailWindowDocument {
  readonly _id: string;
  /** When its slots were taken; 0 for one that was given back. What no longer counts goes with the next one taken. */
  readonly taken: readonly number[];
  /** Not before any of `taken`: the whole window may go once this is over. */
  readonly last_taken: number;
}

/** Where mail slots stand. */
export const mailWindowCollection = {
  name: "mail_windows",
  indexes: [{ name: "by_age", key: { last_taken: 1 } }],
} as const satisfies CollectionDeclaration;

/** What the adapter finds windows by, by purpose; exported so that a test can ask the database for the plans. */
export const mailWindowQueries = {
  overBefore: (before: number) => ({ last_taken: { $lt: before } }),
} as const;

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
        // What was there before tells what the database decided: it counted the same.
        const before = await run(signal, () =>
          windows.findOneAndUpdate({ _id: window }, update, { returnDocument: "before" }),
        );
        if (before !== null) return before.taken.filter((at) => at > since).length < limit;
        await open(window, now, signal);
      }
    },
    async giveBack(window, takenAt, signal) {
      await run(signal, () => windows.updateOne({ _id: window, taken: takenAt }, { $set: { "taken.$": 0 } }));
    },
    async prune(before, signal) {
      await run(signal, () => windows.deleteMany(mailWindowQueries.overBefore(before)));
    },
  };

  /**
   * Makes a window that is not there yet: apart from taking, since an upsert that meets another does not tell what
   * was before.
   */
  async function open(window: string, now: number, signal: AbortSignal): Promise<void> {
    try {
      await run(signal, () => windows.insertOne({ _id: window, taken: [], last_taken: now }));
    } catch (error) {
      if (!isDuplicateKey(error)) throw error;
    }
  }
}
