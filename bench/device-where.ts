/**
 * Times of the first page of devices that meet a condition, of counts by facets, and of the summary, over HTTP; of
 * 50,000 devices in SQLite, or in MongoDB. `node bench/device-where.ts [devices] [sqlite|mongodb]`
 */
import { openDeviceStore } from "@devmesh/devices/start-devices";
import { startMesh } from "@devmesh/testkit/mesh";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { seedDevices, seedStore } from "./dashboard/seeded-devices.ts";
import { inTurns, reportFigures } from "./measure.ts";

const count = Number(process.argv[2] ?? 50_000);
const store = process.argv[3] === "mongodb" ? "mongodb" : "sqlite";
const rounds = 5;
const goals = { page: 100, facets: 300 } as const;

await using folder = await tempFolder();
if (store === "sqlite") await seedDevices(folder.path, count);
// One key makes all requests.
await using mesh = await startMesh({ dataDir: folder.path, store, env: { RATE_MASTER: "1000000" } });
if (store === "mongodb") {
  const devices = await openDeviceStore(`${mesh.storeUrl}_devices`, AbortSignal.timeout(600_000));
  await seedStore(devices, count);
  await devices.close();
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
  // The first round counts; the others are answered from memory.
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
reportFigures(
  Object.entries(requests).map(([name, [, goal]]) => ({
    name: "ms",
    ours: { name: `${store}, ${name}`, values: measured[name as keyof typeof requests].ms },
    ...(goal !== null && { goal: { value: goal } }),
  })),
);
