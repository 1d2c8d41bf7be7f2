/**
 * Times of the first page of devices that meet a condition, of counts by facets, and of the summary, over HTTP, and of
 * the counts of the summary in the store; of 50,000 devices in SQLite, or in MongoDB.
 * `node bench/device-where.ts [devices] [sqlite|mongodb]`
 */
import { join } from "node:path";
import { silentHours } from "@devmesh/contracts/model/fleet";
import { openDeviceStore } from "@devmesh/devices/start-devices";
import { startMesh } from "@devmesh/testkit/mesh";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { seedStore } from "./dashboard/seeded-devices.ts";
import { inTurns, reportFigures } from "./measure.ts";

const count = Number(process.argv[2] ?? 50_000);
const store = process.argv[3] === "mongodb" ? "mongodb" : "sqlite";
const rounds = 5;
const goals = { page: 100, facets: 300 } as const;

await using folder = await tempFolder();
let countings: readonly number[] = [];
if (store === "sqlite") countings = await seedAndCount(`sqlite:${join(folder.path, "devices.db")}`);
// One key makes all requests.
await using mesh = await startMesh({ dataDir: folder.path, store, env: { RATE_MASTER: "1000000" } });
if (store === "mongodb") countings = await seedAndCount(`${mesh.storeUrl}_devices`);

/** How long the store takes to count for a summary, in milliseconds; the first round does not count. */
async function seedAndCount(storeUrl: string): Promise<number[]> {
  const signal = AbortSignal.timeout(600_000);
  const devices = await openDeviceStore(storeUrl, signal);
  await seedStore(devices, count);
  const times: number[] = [];
  for (let round = 0; round <= rounds; round++) {
    const begun = performance.now();
    const since = silentHours.map((hours) => Date.now() - hours * 3_600_000);
    await Promise.all([devices.countByFirmware(since, signal), devices.countBy("label", {}, signal)]);
    times.push(performance.now() - begun);
  }
  await devices.close();
  return times.slice(1);
}

const page = (where: string) => `/api/v2/devices?limit=100&where=${encodeURIComponent(where)}`;
const counts = (where: string) =>
  `/api/v2/device_facets?facets=version,label,problem&where=${encodeURIComponent(where)}`;
const requests = {
  "page, all": [page(""), goals.page],
  "page, label": [page("label:site-7"), goals.page],
  "page, version": [page("version:1.3.3"), goals.page],
  "page, two labels, silent and not online": [
    page("label:pump -label:site-7 silent:1h online:false"),
    goals.page,
  ],
  "page, word that no device has": [page("nothing"), goals.page],
  "page, problem": [page("problem:any"), goals.page],
  "page, not a problem": [page("-problem:any"), goals.page],
  "page, by version": [`${page("")}&order=-version`, goals.page],
  "page, by last seen": [`${page("")}&order=last_seen`, goals.page],
  "page, label, by last seen": [`${page("label:site-7")}&order=last_seen`, goals.page],
  "page, shadow value": [page("reported/app/level:7"), null],
  "facets, all": [counts(""), goals.facets],
  "facets, label": [counts("label:pump"), goals.facets],
  "facets, silent": [counts("silent:1h"), goals.facets],
  "facets, shadow value": [counts("reported/app/level:7"), null],
  // From memory, but for the first one.
  summary: ["/api/v2/device_summary", null],
} as const satisfies Record<string, readonly [string, number | null]>;

async function timeOf(path: string): Promise<number> {
  const begun = performance.now();
  const { status, text } = await mesh.http(path);
  if (status !== 200) throw new Error(`${path}: ${status} ${text}`);
  return performance.now() - begun;
}

const contenders = Object.entries(requests).map(([name, [path]]) => [
  name,
  async () => ({ ms: await timeOf(path) }),
]);
const measured = await inTurns<keyof typeof requests, "ms">(rounds, Object.fromEntries(contenders));
console.log(`${count} devices in ${store}, median (min–max) of ${rounds} rounds`);
reportFigures([
  ...Object.entries(requests).map(([name, [, goal]]) => ({
    name: "ms",
    ours: { name: `${store}, ${name}`, values: measured[name as keyof typeof requests].ms },
    ...(goal !== null && { goal: { value: goal } }),
  })),
  { name: "ms", ours: { name: `${store}, counts of the summary`, values: countings } },
]);
