/**
 * Memory of a process that stores and rolls up as many records of 10,000 devices with ten series each as of 1,000, in
 * SQLite. `node bench/series-memory.ts`
 */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { openSqliteDataStore } from "@devmesh/data/store/data-store.sqlite";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { reportFigures } from "./measure.ts";
import { largestResidentMemory } from "./process-usage.ts";

const records = 120_000;
const seriesOfDevice = 10;
const rounds = 3;
const minute = 60_000;

/** Stores and rolls up all records, of each device in turn; returns the most memory that this process had, in MB. */
async function store(devices: number): Promise<number> {
  await using folder = await tempFolder();
  const store = openSqliteDataStore(join(folder.path, "data.db"));
  const pointers = Array.from({ length: seriesOfDevice }, (_, nth) => `n${nth}`);
  for (let first = 0; first < records; first += 1_000) {
    const batch = Array.from({ length: 1_000 }, (_, at) => {
      const nth = first + at;
      const deviceId = `d${nth % devices}`;
      return {
        delivery: null,
        timestamp: Date.UTC(2026, 0) + Math.floor(nth / devices) * minute,
        deviceId,
        topic: `db/${deviceId}/values`,
        payload: Buffer.from(JSON.stringify(Object.fromEntries(pointers.map((name) => [name, nth])))),
        encoding: "text",
      } as const;
    });
    await store.append(batch);
    if (first % 12_000 === 0) while ((await store.rollUp()) === "more");
  }
  while ((await store.rollUp()) === "more");
  await store.close();
  return await largestResidentMemory(process.pid);
}

const devices = process.argv[2];
if (devices !== undefined) {
  console.log(await store(Number(devices)));
} else {
  const inChild = (count: number) =>
    Array.from({ length: rounds }, () =>
      Number(execFileSync(process.execPath, [import.meta.filename, String(count)], { encoding: "utf8" })),
    );
  reportFigures([
    {
      name: `MB at most, ${records} records rolled up`,
      ours: { name: "10,000 devices of 10 series", values: inChild(10_000) },
      peer: { name: "1,000 devices of 10 series", values: inChild(1_000) },
      digits: 0,
    },
  ]);
}
