import { randomUUID } from "node:crypto";
import { describeOverMongodb } from "@devmesh/testkit/describe-over-mongodb";
import type { TestDatabase } from "@devmesh/testkit/mongodb";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { createMongoLeases } from "../src/leases.mongodb.ts";
import { createSqliteLeases } from "../src/leases.sqlite.ts";
import type { Leases } from "../src/leases.ts";
import { type MongoStore, openMongo } from "../src/mongodb.ts";
import { type MongoUrl, parseStoreUrl } from "../src/store-url.ts";

const { signal } = new AbortController();

/** `leases` returns those of the store that is open. */
function describeLeases(leases: () => Leases): void {
  const newName = () => randomUUID();

  test("one of eight that ask together holds a lease, until it has ended", async () => {
    const { lease } = leases();
    const name = newName();
    const holders = Array.from({ length: 8 }, () => randomUUID());
    const held = await Promise.all(holders.map((holder) => lease(name, holder, 60_000, signal)));
    expect(held.filter(Boolean)).toHaveLength(1);
    const holder = holders[held.indexOf(true)] ?? "";
    expect(await lease(name, "other", 60_000, signal)).toBe(false);
    expect(await lease(name, holder, 0, signal)).toBe(true);
    expect(await lease(name, "other", 60_000, signal)).toBe(true);
  });

  test("a lease is renewed by its holder and free once it is released", async () => {
    const { lease, release } = leases();
    const name = newName();
    expect(await lease(name, "one", 60_000, signal)).toBe(true);
    expect(await lease(name, "one", 60_000, signal)).toBe(true);
    await release(name, "other", signal);
    expect(await lease(name, "other", 60_000, signal)).toBe(false);
    await release(name, "one", signal);
    expect(await lease(name, "other", 60_000, signal)).toBe(true);
  });

  test("leases of different names have different holders", async () => {
    const { lease } = leases();
    expect(await lease(newName(), "one", 60_000, signal)).toBe(true);
    expect(await lease(newName(), "other", 60_000, signal)).toBe(true);
  });
}

describe("leases beside a SQLite file", () => {
  const leases = createSqliteLeases();
  describeLeases(() => leases);
});

describeOverMongodb("leases in MongoDB", (mongodb) => {
  let database: TestDatabase;
  let store: MongoStore;
  beforeEach(async () => {
    database = mongodb().newDatabase();
    store = await openMongo(parseStoreUrl(database.storeUrl) as MongoUrl, [], signal);
  });
  afterEach(async () => {
    await store.close();
    await database[Symbol.asyncDispose]();
  });
  describeLeases(() => createMongoLeases(store));
});
