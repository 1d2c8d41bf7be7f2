/**
 * How fast records are stored, in batches of 1,000: the store as it is, against the same table and indexes without search.
 * `node bench/data-ingest.ts [records]`
 */
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inTransaction, openSqlite } from "../libs/store/src/sqlite.ts";
import { openSqliteDataStore } from "../services/data/src/data-store.sqlite.ts";
import { migrations, tuneForAppending } from "../services/data/src/sqlite/schema.ts";
import { batchOf } from "./data-records.ts";

const records = Number(process.argv[2] ?? 200_000);
const batch = 1_000;
const rounds = 3;
const folder = mkdtempSync(join(tmpdir(), "devmesh-bench-"));

/** Each run on a file of its own; records a second. */
async function withSearch(round: number): Promise<number> {
  const store = openSqliteDataStore(join(folder, `search-${round}.db`), { readers: 1 });
  let ms = 0;
  for (let first = 1; first <= records; first += batch) {
    const messages = batchOf(first, batch);
    const begin = performance.now();
    await store.append(messages);
    ms += performance.now() - begin;
  }
  await store.close();
  return (records / ms) * 1000;
}

function withoutSearch(round: number): number {
  const store = openSqlite(join(folder, `plain-${round}.db`), { migrations, durability: "normal" });
  tuneForAppending(store.db);
  store.db.exec("INSERT INTO streams VALUES (1, 'bench')");
  const insert = store.db.prepare("INSERT INTO records VALUES (?, ?, ?, ?, 1, 1, ?, ?)");
  let ms = 0;
  for (let first = 1; first <= records; first += batch) {
    const messages = batchOf(first, batch);
    const begin = performance.now();
    inTransaction(store.db, () => {
      for (const [at, message] of messages.entries()) {
        const id = first + at;
        insert.run(id, message.timestamp, message.deviceId, message.topic, id, message.payload);
      }
    });
    ms += performance.now() - begin;
  }
  store.close();
  return (records / ms) * 1000;
}

const megabytes = (name: string) => (statSync(join(folder, name)).size / 1e6).toFixed(0);
const middle = (rates: readonly number[]) =>
  rates.toSorted((a, b) => a - b)[Math.floor(rates.length / 2)] ?? Number.NaN;

try {
  const plain: number[] = [];
  const searched: number[] = [];
  // In turns, so that what else the machine does meets both alike.
  for (let round = 0; round < rounds; round++) {
    plain.push(withoutSearch(round));
    searched.push(await withSearch(round));
  }
  console.log(`records ${records}, batches of ${batch}, median of ${rounds} rounds`);
  console.log(`without search: ${middle(plain).toFixed(0)} records/s, ${megabytes("plain-0.db")} MB`);
  console.log(`with search:    ${middle(searched).toFixed(0)} records/s, ${megabytes("search-0.db")} MB`);
  console.log(`ratio: ${(middle(searched) / middle(plain)).toFixed(2)}`);
} finally {
  rmSync(folder, { recursive: true });
}
