import type { MongoUrl } from "@devmesh/store/store-url";
import { parseStoreUrl } from "@devmesh/store/store-url";
import type { TestDatabase, TestMongodb } from "@devmesh/testkit/mongodb";
import { afterEach, beforeEach } from "@jest/globals";
import { type MongoDataStoreOptions, openMongoDataStore } from "../src/store/data-store.mongodb.ts";
import type { DataStore } from "../src/store/data-store.ts";
import { type CommandGate, startCommandGate } from "./command-gate.ts";

const never = new AbortController().signal;

/** Gives each test a database, and a gate on one way to it; stores that it opens are closed with it. */
export function gatedDatabase(mongodb: () => TestMongodb, defaults: MongoDataStoreOptions) {
  let database: TestDatabase;
  let gate: CommandGate;
  const opened: DataStore[] = [];

  beforeEach(async () => {
    database = mongodb().newDatabase();
    gate = await startCommandGate(mongodb().port);
  });
  afterEach(async () => {
    gate.release();
    for (const store of opened.splice(0)) await store.close();
    await gate[Symbol.asyncDispose]();
    await database[Symbol.asyncDispose]();
  });

  async function openAt(url = database.storeUrl, options = defaults): Promise<DataStore> {
    const store = await openMongoDataStore(parseStoreUrl(url) as MongoUrl, never, options);
    opened.push(store);
    return store;
  }

  return {
    get gate() {
      return gate;
    },
    get database() {
      return database;
    },
    /** Opens a store, past the gate unless the URL leads through one. */
    openAt,
    openThroughGate: () => openAt(database.storeUrlBehind(gate.port)),
  };
}
