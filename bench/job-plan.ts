/**
 * A job for all of 100,000 devices: how long until each has its execution, and what that costs in memory; SQLite.
 * `node bench/job-plan.ts [devices]`
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Job } from "@devmesh/contracts/model/job";
import { startMesh } from "@devmesh/testkit/mesh";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { seedDevices } from "./dashboard/seeded-devices.ts";
import { reportFigures } from "./measure.ts";
import {
  cpuSeconds,
  largestResidentMemory,
  meshProcesses,
  resetLargestMemory,
  residentMemory,
} from "./process-usage.ts";

const count = Number(process.argv[2] ?? 100_000);
const goals = { seconds: 20, jobs: 40, devices: 50 } as const;

await using folder = await tempFolder();
await seedDevices(folder.path, count);
await using mesh = await startMesh({
  dataDir: folder.path,
  store: "sqlite",
  env: { RATE_MASTER: "1000000" },
});

/** Plans a job, and cancels it; resolves with the seconds until it runs. */
async function plan(devices: number): Promise<number> {
  const where = devices === count ? {} : { text: { all: ["device-99"] } };
  const action = { kind: "rpc", func: "Sys.Reboot" };
  const begun = performance.now();
  const { json } = await mesh.http("/api/v2/jobs", { body: { target: { where }, action } });
  const { id } = json as Job;
  const path = `/api/v2/jobs/${id}`;
  let job = json as Job;
  while (job.state === "planning") {
    await sleep(100);
    job = (await mesh.http(path)).json as Job;
  }
  const seconds = (performance.now() - begun) / 1_000;
  if (devices === count && job.devices !== count) throw new Error(`the job has ${job.devices} devices`);
  await mesh.http(path, { body: { state: "cancelled" } });
  return seconds;
}

// Compiles the code.
await plan(1);
const pids = await meshProcesses(mesh);
const processes = [pids.jobs, pids.devices].map((pid) => Number(pid));
const before: number[] = [];
for (const pid of processes) {
  before.push((await residentMemory(pid)).rss);
  await resetLargestMemory(pid);
}
const spent = await cpuSeconds(processes);
const seconds = await plan(count);
const cpu = (await cpuSeconds(processes)) - spent;
const grown: number[] = [];
for (const [nth, pid] of processes.entries())
  grown.push((await largestResidentMemory(pid)) - (before[nth] ?? Number.NaN));
const [jobs = Number.NaN, devices = Number.NaN] = grown;
const figure = (name: string, value: number, goal?: number) => ({
  name,
  ours: { name: `${count} devices`, values: [value] },
  digits: 1,
  ...(goal !== undefined && { goal: { value: goal } }),
});
reportFigures([
  figure("planned, s", seconds, goals.seconds),
  figure("processor time of jobs and devices, s", cpu),
  figure("jobs grows by, MB", jobs, goals.jobs),
  figure("devices grows by, MB", devices, goals.devices),
]);
