/**
 * Numbers over time in SQLite, beside DuckDB on the same numbers: storing with and without rolling up, rolling up, and
 * answers by the hour. `node bench/series.ts [days]`
 */
import { statSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openSqliteDataStore, type SqliteDataStore } from "@devmesh/data/store/data-store.sqlite";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { inTurns, reportFigures } from "./measure.ts";
import { installPeers, startPeer } from "./peer.ts";
import { numberAt, seriesStart } from "./peers/sample-numbers.ts";

const days = Number(process.argv[2] ?? 30);
const rounds = 9;
const [second, minute, hour] = [1_000, 60_000, 3_600_000];
const daySeconds = 86_400;
const fleet = Array.from({ length: 100 }, (_, nth) => `d${nth}`);
const never = new AbortController().signal;

await installPeers();
await using folder = await tempFolder();

function numberOf(deviceId: string, nth: number, everyMs: number) {
  return {
    delivery: null,
    timestamp: seriesStart + nth * everyMs,
    deviceId,
    topic: `db/${deviceId}/temp`,
    payload: Buffer.from(`{"celsius":${numberAt(nth)}}`),
    encoding: "text",
  } as const;
}

/** Stores numbers of devices, one of each in turn, in batches of a thousand. */
async function fill(store: SqliteDataStore, deviceIds: readonly string[], count: number, everyMs: number) {
  let batch = [];
  for (let nth = 0; nth < count; nth++) {
    for (const deviceId of deviceIds) batch.push(numberOf(deviceId, nth, everyMs));
    if (batch.length < 1_000 && nth < count - 1) continue;
    await store.append(batch);
    batch = [];
  }
}

async function rollUp(store: SqliteDataStore): Promise<void> {
  while ((await store.rollUp()) === "more");
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
}

function hours(store: SqliteDataStore, deviceId: string, count: number) {
  const edges = Array.from({ length: count + 1 }, (_, at) => seriesStart + at * hour);
  const key = { deviceId, topic: `db/${deviceId}/temp`, pointer: "/celsius" };
  return store.readSpans({ ...key, caller: "bench", edges, source: "hours", maxRecords: 0 }, never);
}

/** Stores a hundred thousand numbers of a fleet, rolled up beside it or not at all. */
let stores = 0;
async function storing(isRolledUp: boolean) {
  const store = openSqliteDataStore(join(folder.path, `storing-${stores++}.db`));
  const count = 1_000;
  let isDone = false;
  const rolling = (async () => {
    while (isRolledUp && !isDone) {
      await rollUp(store);
      await sleep(second);
    }
  })();
  const before = process.threadCpuUsage();
  const ms = await timed(() => fill(store, fleet, count, minute));
  isDone = true;
  await rolling;
  if (isRolledUp) await rollUp(store);
  const { user, system } = process.threadCpuUsage(before);
  await store.close();
  const records = count * fleet.length;
  return {
    "records/s": (records * second) / ms,
    // All are rolled up here, also those that were left when the last one was stored.
    "records per CPU second": (records * 1e6) / (user + system),
  };
}

const path = join(folder.path, "data.db");
const store = openSqliteDataStore(path);
const seconds = days * daySeconds;
const storedMs = await timed(() => fill(store, ["pump"], seconds, second));
const before = (await store.size()).bytes;
const rolledMs = await timed(() => rollUp(store));
await fill(store, fleet, 7 * 24 * 60, minute);
await rollUp(store);
const log = await open(join(folder.path, "duckdb.log"), "w");
await using duckdb = startPeer(
  "duckdb-series",
  { SERIES_SECONDS: String(seconds), SERIES_PATH: join(folder.path, "duck.db") },
  log.fd,
);
await duckdb.ready;

async function ours() {
  let spans: Awaited<ReturnType<typeof hours>> = [];
  const ms = await timed(async () => {
    spans = await hours(store, "pump", days * 24);
  });
  return { ms, sum: (spans ?? []).reduce((sum, span) => sum + (span?.sum ?? 0), 0) };
}

async function theirs() {
  return (await duckdb.ask()) as { readonly ms: number; readonly sum: number };
}

if ((await ours()).sum !== (await theirs()).sum) throw new Error("the numbers of both differ");
const read = await inTurns<"ours" | "duckdb", "ms">(rounds, {
  ours: async () => ({ ms: (await ours()).ms }),
  duckdb: async () => ({ ms: (await theirs()).ms }),
});
const ofFleet = await inTurns<"fleet", "ms">(rounds, {
  fleet: async () => ({ ms: await timed(() => Promise.all(fleet.map((id) => hours(store, id, 7 * 24)))) }),
});
const stored = await inTurns<"with" | "without", "records/s" | "records per CPU second">(rounds, {
  with: () => storing(true),
  without: () => storing(false),
});
const fileBytes = statSync(path).size;
await store.close();
await log.close();

console.log(
  `${seconds} numbers of one device in ${Math.round(before / 1e6)} MB, a file of ${Math.round(fileBytes / 1e6)} MB`,
);
reportFigures([
  {
    name: `ms, ${days} days of a number a second by hours`,
    ours: { name: "GET /series", values: read.ours.ms },
    peer: { name: "DuckDB", values: read.duckdb.ms },
    goal: { value: 20 },
    digits: 1,
  },
  {
    name: "ms, 100 devices, a week by hours",
    ours: { name: "GET /series", values: ofFleet.fleet.ms },
    goal: { value: 200 },
  },
  {
    name: "records/s stored, 100 devices",
    ours: { name: "rolled up", values: stored.with["records/s"] },
    peer: { name: "not rolled up", values: stored.without["records/s"] },
    goal: { ratio: 0.95 },
  },
  {
    name: "records per CPU second of the thread that stores, 100 devices",
    ours: { name: "rolled up", values: stored.with["records per CPU second"] },
    peer: { name: "not rolled up", values: stored.without["records per CPU second"] },
  },
  {
    name: "records/s of one device",
    ours: { name: "rolling up", values: [(seconds * second) / rolledMs] },
    peer: { name: "storing", values: [(seconds * second) / storedMs] },
    // Five times what one device stores through the broker (docs/performance.md, ingestion).
    goal: { value: 160_000 },
  },
]);
