import { type MongoStore, openMongo } from "@devmesh/store/mongodb";
import type { MongoUrl } from "@devmesh/store/store-url";
import { parseStoreUrl } from "@devmesh/store/store-url";
import { describeOverMongodb } from "@devmesh/testkit/describe-over-mongodb";
import type { TestDatabase } from "@devmesh/testkit/mongodb";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { Document } from "mongodb";
import { openMongoDataStore } from "../src/store/data-store.mongodb.ts";
import type { DataMessage, DataStore } from "../src/store/data-store.ts";
import { collectionsOf, recordIndexes } from "../src/store/mongodb/collections.ts";
import { planOf, sortOf } from "../src/store/mongodb/record-plan.ts";

const never = new AbortController().signal;
const start = 1_767_225_600_000;

/**
 * What a plan names: indexes, and stages of reading everything or of sorting. MongoDB's own plans have stages, those
 * of servers on PostgreSQL have node types.
 */
function named(plan: unknown): { readonly indexes: string[]; readonly stages: string[] } {
  const indexes = new Set<string>();
  const stages = new Set<string>();
  const visit = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    for (const [member, inner] of Object.entries(value)) {
      if (member === "rejectedPlans" || member === "IndexCosts") continue;
      if (member === "indexName" || member === "Index Name") indexes.add(String(inner));
      else if (member === "stage" || member === "Node Type") stages.add(String(inner));
      else visit(inner);
    }
  };
  visit(plan);
  return { indexes: [...indexes], stages: [...stages] };
}

describeOverMongodb("queries of a MongoDB data store", (mongodb) => {
  let database: TestDatabase;
  let store: DataStore;
  let opened: MongoStore;
  beforeAll(async () => {
    database = mongodb().newDatabase();
    const url = parseStoreUrl(database.storeUrl) as MongoUrl;
    store = await openMongoDataStore(url, never);
    opened = await openMongo(url, [], never);
    for (let first = 0; first < 10_000; first += 1_000) {
      await store.append(
        Array.from({ length: 1_000 }, (_, at): DataMessage => {
          const number = first + at;
          const deviceId = `pump-${number % 50}`;
          return {
            delivery: { streamCreated: "2026-01-01T00:00:00Z", sequence: number },
            timestamp: start + number,
            deviceId,
            topic: `db/${deviceId}/temp/${number % 3}`,
            payload: Buffer.from(`number ${number}`),
            encoding: "text",
          };
        }),
      );
    }
  });
  afterAll(async () => {
    await opened?.close();
    await store?.close();
    await database?.[Symbol.asyncDispose]();
  });

  function expectIndex(plan: Document, index: string): void {
    const { indexes, stages } = named(plan);
    expect(indexes).toContain(index);
    expect(stages).not.toContain("COLLSCAN");
    expect(stages).not.toContain("Seq Scan");
  }

  test.each([
    ["all records", {}, recordIndexes.id],
    ["a filter", { filter: "number 77" }, recordIndexes.id],
    ["a time", { since: start + 9_000 }, recordIndexes.id],
    ["a device", { deviceId: "pump-7" }, recordIndexes.device],
    ["a filter of a device", { deviceId: "pump-7", filter: "number 77" }, recordIndexes.device],
    ["a time of a device", { deviceId: "pump-7", until: start + 100 }, recordIndexes.device],
    ["a topic", { deviceId: "pump-7", topic: "temp/1" }, recordIndexes.topic],
    ["a topic filter of many matches", { deviceId: "pump-7", topic: "temp/#" }, recordIndexes.device],
  ] as const)(
    "%s is read by an index, in either direction, and counted by it",
    async (_, selection, index) => {
      const { records } = collectionsOf(opened);
      for (const order of ["asc", "desc"] as const) {
        const plan = planOf({ order, ...selection });
        const where = { $and: [{ _id: { $gte: 100, $lte: 9_000 } }, plan.conditions] };
        expect(plan.index).toBe(index);
        const found = records.find(where, { hint: plan.index }).sort(sortOf(plan, order)).limit(100);
        expectIndex(await found.explain(), index);
        const counted = records.aggregate([{ $match: where }, { $limit: 50 }, { $count: "matches" }], {
          hint: plan.index,
        });
        expectIndex(await counted.explain(), index);
      }
    },
  );

  test("whether a batch was stored before, what has expired, and what a topic filter may match is looked up by indexes", async () => {
    const { records } = collectionsOf(opened);
    const sequence = { $gte: 100, $lte: 200 };
    const last = records.find(
      { stream: "2026-01-01T00:00:00Z", sequence: { $exists: true } },
      { hint: recordIndexes.delivery },
    );
    expectIndex(await last.sort({ sequence: -1 }).limit(1).explain(), recordIndexes.delivery);
    const repeated = records.find(
      { stream: "2026-01-01T00:00:00Z", sequence },
      { hint: recordIndexes.delivery },
    );
    expectIndex(await repeated.explain(), recordIndexes.delivery);
    const expired = records.find({ time: { $lt: new Date(start + 5) } }, { hint: recordIndexes.time });
    expectIndex(await expired.sort({ time: 1 }).limit(500).explain(), recordIndexes.time);
    const topic = { $gte: "db/pump-7/temp/", $lt: "db/pump-7/temp0" };
    const onTopics = records.find({ topic }, { hint: recordIndexes.topic });
    expectIndex(await onTopics.limit(500).explain(), recordIndexes.topic);
    const voids = records.find({ void: { $lt: new Date(start) } }, { hint: recordIndexes.void });
    expectIndex(await voids.explain(), recordIndexes.void);
  });
});
