/**
 * How fast records are stored, in batches of 1,000: the store as it is, against the same table and indexes without search.
 * `node bench/data-ingest.ts [records]`
 */
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inTransaction, openSqlite } from "../libs/store/src/sqlite.ts";
import { openSqliteDataStore } from "../services/data/src/data-store.sqlite.ts";
import { migrations } from "../services/data/src/sqlite/schema.ts";
import { batchOf } from "./data-records.ts";

const records = Number(process.argv[2] ?? 200_000);
const batch = 1_000;
const folder = mkdtempSync(join(tmpdir(), "devmesh-bench-"));

async function withSearch(): Promise<number> {
  const store = openSqliteDataStore(join(folder, "search.db"), { readers: 1 });
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

function withoutSearch(): number {
  const store = openSqlite(join(folder, "plain.db"), { migrations, durability: "normal" });
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
try {
  const plain = withoutSearch();
  const searched = await withSearch();
  console.log(`records ${records}, batches of ${batch}`);
  console.log(`without search: ${plain.toFixed(0)} records/s, ${megabytes("plain.db")} MB`);
  console.log(`with search:    ${searched.toFixed(0)} records/s, ${megabytes("search.db")} MB`);
  console.log(`ratio: ${(searched / plain).toFixed(2)}`);
} finally {
  rmSync(folder, { recursive: true });
}
