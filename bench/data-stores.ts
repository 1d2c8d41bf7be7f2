/**
 * Records in MongoDB against SQLite, in turns: batches of 1,000, the last 100 records, and filters.
 * `node bench/data-stores.ts [records]`, with `MONGODB_URL` or Docker
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openMongoDataStore } from "@devmesh/data/src/store/data-store.mongodb.ts";
import { openSqliteDataStore } from "@devmesh/data/src/store/data-store.sqlite.ts";
import type { DataStore, PageRequest, RecordSelection } from "@devmesh/data/src/store/data-store.ts";
import { parseStoreUrl } from "@devmesh/store/store-url";
import { findMongodb, withoutMongodb } from "@devmesh/testkit/mongodb";
import { batchOf } from "./data-records.ts";
import { inTurns, report } from "./measure.ts";

const records = Number(process.argv[2] ?? 1_000_000);
const batch = 1_000;
const storingRounds = 4;
const queryRounds = 9;

await using mongodb = await findMongodb();
if (mongodb === null) throw new Error(withoutMongodb);
await using database = mongodb.newDatabase();
const url = parseStoreUrl(database.storeUrl);
if (url.kind !== "mongodb") throw new Error("MONGODB_URL is none of MongoDB");
const { signal } = new AbortController();
const folder = mkdtempSync(join(tmpdir(), "devmesh-bench-"));
const overMongodb = await openMongoDataStore(url, signal);
const overSqlite = openSqliteDataStore(join(folder, "data.db"));

/** Stores the next part of the records; all rounds and the warm-up together store all. */
function storing(store: DataStore) {
  const part = Math.ceil(records / (storingRounds + 1) / batch) * batch;
  let next = 1;
  return async () => {
    let ms = 0;
    for (const end = next + part; next < end; next += batch) {
      const messages = batchOf(next, batch);
      const begin = performance.now();
      await store.append(messages);
      ms += performance.now() - begin;
    }
    return { "records stored, /s": (part / ms) * 1000 };
  };
}

/** Each query once; its time in milliseconds. */
function querying(store: DataStore) {
  const device = { deviceId: "pump-7" };
  const timeOf = async (selection: Partial<RecordSelection>, page: Partial<PageRequest> = {}) => {
    const bounds = { caller: "bench", skip: 0, limit: 100, maxBytes: 512 * 1024, searchMs: 60_000, ...page };
    const begin = performance.now();
    await store.readPage({ order: "asc", ...selection }, bounds, signal);
    return performance.now() - begin;
  };
  return async () => ({
    "last 100 (skip -100), ms": await timeOf({}, { skip: -100 }),
    "last 100 of a device, ms": await timeOf(device, { skip: -100 }),
    "100 after the middle (skip), ms": await timeOf({}, { skip: Math.floor(records / 2) }),
    "rare filter, ms": await timeOf({ filter: `"seq":${Math.floor(records / 2)},` }),
    "rare filter of a device, ms": await timeOf({
      ...device,
      filter: `"seq":${records - (records % 500) - 493},`,
    }),
    "filter that matches nothing, ms": await timeOf({ filter: "no such thing" }),
    "filter that all match, ms": await timeOf({ filter: "temperature" }),
    "two characters that match nothing, ms": await timeOf({ filter: "~~" }),
  });
}

try {
  const sides = { ours: "MongoDB", peer: "SQLite" } as const;
  const stored = await inTurns(storingRounds, { SQLite: storing(overSqlite), MongoDB: storing(overMongodb) });
  console.log(`${records} records, batches of ${batch}; median (min–max)`);
  report(stored, sides);
  const asked = await inTurns(queryRounds, { SQLite: querying(overSqlite), MongoDB: querying(overMongodb) });
  report(asked, { ...sides, digits: 1 });
  console.log(`resident memory of this process: ${(process.memoryUsage().rss / 1e6).toFixed(0)} MB`);
} finally {
  await overMongodb.close();
  await overSqlite.close();
  rmSync(folder, { recursive: true });
}
