/**
 * Queries over many records, against a table scan in the same run; and how long ingestion waits meanwhile.
 * `node bench/data-query.ts [records]`
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { PageRequest, RecordSelection } from "@devmesh/data/store/data-store";
import { openSqliteDataStore } from "@devmesh/data/store/data-store.sqlite";
import { openSqliteReader } from "@devmesh/store/sqlite";
import { batchOf } from "./data-records.ts";
import { reportFigures } from "./measure.ts";

const records = Number(process.argv[2] ?? 1_000_000);
const folder = mkdtempSync(join(tmpdir(), "devmesh-bench-"));
const path = join(folder, "data.db");
const store = openSqliteDataStore(path);
const { signal } = new AbortController();

async function query(selection: Partial<RecordSelection>, page: Partial<PageRequest>): Promise<number> {
  const bounds = { caller: "bench", skip: 0, limit: 100, maxBytes: 512 * 1024, searchMs: 60_000, ...page };
  return (await store.readPage({ order: "asc", ...selection }, bounds, signal)).items.length;
}

/** Of several runs, in milliseconds. */
async function timesOf(work: () => unknown): Promise<number[]> {
  const times: number[] = [];
  for (let run = 0; run < 7; run++) {
    const begin = performance.now();
    await work();
    times.push(performance.now() - begin);
  }
  return times;
}

const rare = `"seq":${Math.floor(records / 2)},`;
const device = { deviceId: "pump-7" };
const queries: Readonly<Record<string, () => Promise<number>>> = {
  "last 100 (skip -100)": () => query({}, { skip: -100 }),
  "last 100 of a device": () => query(device, { skip: -100 }),
  "last 100, descending": () => query({ order: "desc" }, {}),
  "100 after the middle (skip)": () => query({}, { skip: Math.floor(records / 2) }),
  "rare filter": () => query({ filter: rare }, {}),
  "rare filter of a device": () =>
    query({ ...device, filter: `"seq":${records - (records % 500) - 493},` }, {}),
  "filter that matches nothing": () => query({ filter: "no such thing" }, {}),
  "filter that all match": () => query({ filter: "temperature" }, {}),
  "topic temperature/# of a device": () => query({ ...device, topic: "telemetry/#" }, { skip: -100 }),
  "two characters that match nothing": () => query({ filter: "~~" }, {}),
};

try {
  for (let first = 1; first <= records; first += 1_000) await store.append(batchOf(first, 1_000));
  console.log(`${records} records, ${((await store.size()).bytes / 1e6).toFixed(0)} MB`);
  const reader = openSqliteReader(path);
  const scan = reader.prepare(
    "SELECT count(*) AS n FROM records WHERE instr(payload, ?) > 0 OR instr(topic, ?) > 0",
  );
  const scanned = await timesOf(() => scan.get(Buffer.from(rare), rare));
  reader.close();
  for (const [name, work] of Object.entries(queries)) {
    const found = await work();
    reportFigures([
      {
        name: `${name}, ms (${found} records)`,
        ours: { name: "query", values: await timesOf(work) },
        peer: { name: "reading through the table", values: scanned },
        digits: 1,
      },
    ]);
  }

  let next = records + 1;
  const append = async () => {
    await store.append(batchOf(next, 1_000));
    next += 1_000;
  };
  const alone = await timesOf(append);
  const scans = Array.from({ length: 8 }, () => query({ filter: "~~" }, {}));
  const beside = await timesOf(append);
  await Promise.all(scans);
  reportFigures([
    {
      name: "a batch of 1,000, ms",
      ours: { name: "beside eight long scans", values: beside },
      peer: { name: "alone", values: alone },
      digits: 1,
    },
  ]);

  const lastHundred = () => query({}, { skip: -100 });
  const quiet = await timesOf(lastHundred);
  const greedy = Array.from({ length: 50 }, () =>
    query({ filter: "~~" }, { caller: "greedy", searchMs: 5_000 }),
  );
  const attacked = await timesOf(lastHundred);
  await Promise.all(greedy);
  reportFigures([
    {
      name: "last 100 of a key, ms",
      ours: { name: "beside 50 long searches of another key", values: attacked },
      peer: { name: "quiet", values: quiet },
      digits: 1,
    },
  ]);
} finally {
  await store.close();
  rmSync(folder, { recursive: true });
}
