/**
 * Records stored a second, in batches of 1,000, against the same table and indexes without search.
 * `node bench/data-ingest.ts [records]`
 */
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openSqliteDataStore } from "@devmesh/data/store/data-store.sqlite";
import { migrations, tuneForAppending } from "@devmesh/data/store/sqlite/schema";
import { inTransaction, openSqlite } from "@devmesh/store/sqlite";
import { batchOf } from "./data-records.ts";
import { inTurns, report } from "./measure.ts";

const records = Number(process.argv[2] ?? 200_000);
const batch = 1_000;
const rounds = 3;
const folder = mkdtempSync(join(tmpdir(), "devmesh-bench-"));

/** Each run has a new file; records a second. */
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
  const store = openSqlite(join(folder, `plain-${round}.db`), { migrations });
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

try {
  let [plainRuns, searchRuns] = [0, 0];
  const measured = await inTurns(rounds, {
    "with search": async () => ({ "records/s": await withSearch(searchRuns++) }),
    "without search": () => ({ "records/s": withoutSearch(plainRuns++) }),
  });
  console.log(`records ${records}, batches of ${batch}, median (min–max) of ${rounds} rounds`);
  report(measured, { ours: "with search", peer: "without search" });
  console.log(`MB with search ${megabytes("search-0.db")}, without ${megabytes("plain-0.db")}`);
} finally {
  rmSync(folder, { recursive: true });
}
