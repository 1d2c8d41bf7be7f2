import { createMongoLimit } from "../src/limit.mongodb.ts";
import { type MongoStore, openMongo, unlessDuplicate } from "../src/mongodb.ts";
import { type MongoUrl, parseStoreUrl } from "../src/store-url.ts";

interface Thing {
  readonly _id: string;
}

/** Things as a replica stores them, of which there are at most so many. */
export async function openLimitedThings(storeUrl: string, signal: AbortSignal, nowMs?: () => number) {
  const store: MongoStore = await openMongo(parseStoreUrl(storeUrl) as MongoUrl, [], signal);
  const { db, run } = store;
  const things = db.collection<Thing>("things");
  const countStored = (given: AbortSignal) => run(given, () => things.countDocuments({}, { signal: given }));
  const limit = createMongoLimit(store, { name: "things", countStored, ...(nowMs && { nowMs }) });
  return {
    limit,
    count: () => countStored(signal),
    /** Stores a thing without its limit, as an earlier release does. */
    put: (_id: string) => unlessDuplicate(run(signal, () => things.insertOne({ _id }))),
    insert(_id: string, most: number, amount?: number): Promise<boolean> {
      return limit.insert(
        most,
        () => unlessDuplicate(run(signal, () => things.insertOne({ _id }))),
        signal,
        amount,
      );
    },
    drop: async (_id: string) => (await run(signal, () => things.deleteOne({ _id }))).deletedCount,
    async remove(_id: string): Promise<number> {
      const remove = async () => (await run(signal, () => things.deleteOne({ _id }))).deletedCount;
      return await limit.remove(remove, signal);
    },
    close: () => store.close(),
  };
}
