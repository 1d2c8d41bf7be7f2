import { parseStoreUrl } from "@devmesh/store/store-url";
import { describeOverMongodb } from "@devmesh/testkit/describe-over-mongodb";
import type { TestMongodb } from "@devmesh/testkit/mongodb";
import { type MongoDataStoreOptions, openMongoDataStore } from "../src/store/data-store.mongodb.ts";
import { describeDataStore } from "./data-store.suite.ts";
import { describeSeries } from "./series.suite.ts";

const never = new AbortController().signal;

/** Opens a store in a new database. */
async function open(mongodb: TestMongodb, options: MongoDataStoreOptions = {}) {
  const database = mongodb.newDatabase();
  const url = parseStoreUrl(database.storeUrl);
  if (url.kind !== "mongodb") throw new Error("not a MongoDB URL");
  let store = await openMongoDataStore(url, never, options);
  return {
    store,
    async reopen() {
      await store.close();
      store = await openMongoDataStore(url, never, options);
      return store;
    },
    async dispose() {
      await store.close();
      await database[Symbol.asyncDispose]();
    },
  };
}

describeOverMongodb("over MongoDB", (mongodb) => {
  describeDataStore("MongoDB", () => open(mongodb()), { randomQueries: 200 });
  // Small segments, so that each query crosses many of them.
  describeDataStore(
    "MongoDB in small segments",
    () => open(mongodb(), { segmentIds: 7, segmentBytes: 100_000 }),
    { randomQueries: 100, manyRecords: false },
  );
  describeSeries("MongoDB", () => open(mongodb(), { segmentIds: 50 }), { runs: 20 });
});
