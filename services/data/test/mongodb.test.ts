import { parseStoreUrl } from "@devmesh/store/store-url";
import { findMongodb, withoutMongodb } from "@devmesh/testkit/mongodb";
import { afterAll, describe } from "@jest/globals";
import { type MongoDataStoreOptions, openMongoDataStore } from "../src/data-store.mongodb.ts";
import { describeDataStore } from "./data-store.suite.ts";

const mongodb = await findMongodb();
const never = new AbortController().signal;

afterAll(async () => {
  await mongodb?.[Symbol.asyncDispose]();
});

/** Opens a store in a database of its own. */
async function open(options: MongoDataStoreOptions = {}) {
  if (mongodb === null) throw new Error(withoutMongodb);
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

(mongodb === null ? describe.skip : describe)(
  `over MongoDB${mongodb === null ? ` (${withoutMongodb})` : ""}`,
  () => {
    describeDataStore("MongoDB", () => open(), { randomQueries: 200 });
    // Small segments, so that each query crosses many of them.
    describeDataStore("MongoDB in small segments", () => open({ segmentIds: 7, segmentBytes: 100_000 }), {
      randomQueries: 100,
    });
  },
);
