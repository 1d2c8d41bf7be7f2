/**
 * A fleet on one machine: devices that stay connected among many that are registered and away. Memory with few and
 * with all registered, all logins, all logins again after the broker is killed, a change of each shadow, lists, and a
 * steady load. `node bench/fleet.ts [connected] [registered] [minutes]`
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startMesh, type TestMesh } from "@devmesh/testkit/mesh";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { type Child, startChild } from "./child.ts";
import { seedDevices } from "./dashboard/seeded-devices.ts";
import type { FleetState } from "./fleet/devices.ts";
import { type Figure, p99, reportFigures } from "./measure.ts";
import { createDevices, numbers, withoutRateLimits } from "./mesh-tenant.ts";
import { meshProcesses, residentMemory } from "./process-usage.ts";

const [connected = 15_000, registered = 200_000, minutes = 10] = process.argv.slice(2).map(Number);
/** Devices of one process: each is a connection, and a process may open a bounded number of them. */
const ofProcess = 5_000;
const few = 1_000;
const settleMs = 10_000;
const figures: Figure[] = [];
const add = (name: string, value: number, digits = 0) =>
  figures.push({ name, ours: { name: "mesh", values: [value] }, digits });

await using folder = await tempFolder();

async function startSeeded(count: number): Promise<TestMesh> {
  const dataDir = join(folder.path, String(count));
  await mkdir(dataDir, { recursive: true });
  await seedDevices(dataDir, count);
  return await startMesh({ dataDir, env: withoutRateLimits });
}

async function memoryOf(mesh: TestMesh): Promise<ReadonlyMap<string, number>> {
  await sleep(settleMs);
  const parts = Object.entries(await meshProcesses(mesh));
  return new Map(
    await Promise.all(parts.map(async ([name, pid]) => [name, (await residentMemory(pid)).rss] as const)),
  );
}

/** Growth of a process that is shown, in MB: less is within the spread of a process that does nothing. */
const shownGrowth = 5;

/** Adds the growth of the processes that grew. The caches of a store are in the process of its service. */
function addGrowth(
  after: ReadonlyMap<string, number>,
  before: ReadonlyMap<string, number>,
  what: string,
): void {
  for (const [part, megabytes] of after) {
    const more = megabytes - (before.get(part) ?? Number.NaN);
    if (more >= shownGrowth) add(`MB more of ${part} ${what}`, more);
  }
}

async function stateOf(children: readonly Child[]): Promise<FleetState> {
  const states = (await Promise.all(children.map((child) => child.ask()))) as FleetState[];
  const sum = (member: keyof FleetState) => states.reduce((total, state) => total + state[member], 0);
  return {
    connected: sum("connected"),
    refused: sum("refused"),
    deltas: sum("deltas"),
    acknowledged: sum("acknowledged"),
  };
}

/** Waits until the fleet is as wanted, and returns the seconds that took. */
async function untilFleet(
  children: readonly Child[],
  isReached: (state: FleetState) => boolean,
): Promise<number> {
  const begin = performance.now();
  while (!isReached(await stateOf(children))) await sleep(200);
  return (performance.now() - begin) / 1_000;
}

async function addReads(mesh: TestMesh): Promise<void> {
  const reads = {
    "a page of 100 devices": "/api/v2/devices?limit=100",
    "a page of those that are online": "/api/v2/devices?limit=100&where=online:true",
    "the counts of the home page": "/api/v2/device_facets?facets=version,label",
  };
  for (const [name, path] of Object.entries(reads)) {
    const ms: number[] = [];
    for (let nth = 0; nth < 20; nth++) {
      const begin = performance.now();
      const { status, text } = await mesh.http(path);
      if (status !== 200) throw new Error(`${path}: ${status} ${text}`);
      ms.push(performance.now() - begin);
    }
    add(`p99, ms, of ${name}`, p99(ms));
  }
}

let idleWithFew: ReadonlyMap<string, number>;
{
  const mesh = await startSeeded(few);
  idleWithFew = await memoryOf(mesh);
  await mesh.stop();
}
const mesh = await startSeeded(registered);
try {
  const idle = await memoryOf(mesh);
  addGrowth(idle, idleWithFew, `with ${registered} registered instead of ${few}`);
  const credentials = await createDevices(mesh, connected);
  const children: Child[] = [];
  const begin = performance.now();
  for (let first = 0; first < connected; first += ofProcess) {
    const file = join(folder.path, `devices-${first}.json`);
    await writeFile(file, JSON.stringify(credentials.slice(first, first + ofProcess)));
    const child = startChild(import.meta.resolve("./fleet/devices.ts"), {
      BENCH_MQTT_PORT: String(mesh.ports.mqtt),
      BENCH_DEVICES: file,
    });
    await child.ready;
    children.push(child);
  }
  const isWhole = (state: FleetState) => state.connected === connected;
  await untilFleet(children, isWhole);
  add(`s until ${connected} are connected`, (performance.now() - begin) / 1_000, 1);
  const connectedMemory = await memoryOf(mesh);
  for (const [part, megabytes] of connectedMemory)
    add(
      `KB of ${part} for each connected`,
      ((megabytes - (idle.get(part) ?? Number.NaN)) * 1_000) / connected,
      1,
    );
  await addReads(mesh);

  const { deltas } = await stateOf(children);
  const changing = performance.now();
  const next = numbers(connected);
  const change = async () => {
    for (const nth of next) {
      const body = { shadow: { state: { desired: { level: nth + 1 } } } };
      const { status, text } = await mesh.http(`/api/v2/devices/${credentials[nth]?.id}`, { body });
      if (status !== 200) throw new Error(`changing ${nth}: ${status} ${text}`);
    }
  };
  await Promise.all(Array.from({ length: 50 }, change));
  await untilFleet(children, (state) => state.deltas >= deltas + connected);
  add("s until each has a change of its shadow", (performance.now() - changing) / 1_000, 1);

  const { refused } = await stateOf(children);
  const broker = (await meshProcesses(mesh))["nats-server"];
  if (broker === undefined) throw new Error("the mesh has no broker");
  process.kill(broker, "SIGKILL");
  await untilFleet(children, (state) => state.connected < connected / 2);
  add("s until the last is back after the broker is killed", await untilFleet(children, isWhole), 1);
  add("attempts that found no broker or were refused", (await stateOf(children)).refused - refused);

  const before = await memoryOf(mesh);
  const { acknowledged } = await stateOf(children);
  await sleep(minutes * 60_000);
  add("records acknowledged a minute", ((await stateOf(children)).acknowledged - acknowledged) / minutes);
  addGrowth(await memoryOf(mesh), before, `after ${minutes} minutes`);
  for (const child of children) await child[Symbol.asyncDispose]();
} finally {
  await mesh.stop();
}
reportFigures(figures);
