/**
 * Resident memory of each process of a mesh as `npm start` runs it, idle and then with 200 devices, against a
 * limit for all that idle; each round has a new mesh. `node bench/memory.ts [devices]`
 */
import { setTimeout as sleep } from "node:timers/promises";
import { startMesh, type TestMesh } from "@devmesh/testkit/mesh";
import { connectMqttDevice } from "@devmesh/testkit/mqtt-device";
import { type Figure, reportFigures } from "./measure.ts";
import { createDevices } from "./mesh-tenant.ts";
import { meshProcesses, residentMemory } from "./process-usage.ts";

const count = Number(process.argv[2] ?? 200);
const rounds = 3;
/** Time to register connections and collect garbage. */
const settleMs = 4_000;
const all = "all";
const allShared = "all, shared pages once";
const idleLimits: Readonly<Record<string, number>> = { [all]: 600, [allShared]: 350 };

// The first start compiles; a mesh usually runs with the code compiled.
await (await startMesh({ through: "run.mjs" })).stop();
const idle: Record<string, number[]> = {};
const connected: Record<string, number[]> = {};
for (let round = 0; round < rounds; round++) {
  await using mesh = await startMesh({ through: "run.mjs" });
  await measure(mesh, idle);
  await connectDevices(mesh);
  await measure(mesh, connected);
}

/** Adds the memory of each process, and of all, to the figures. */
async function measure(mesh: TestMesh, figures: Record<string, number[]>): Promise<void> {
  await sleep(settleMs);
  const add = (name: string, value: number) => {
    figures[name] ??= [];
    figures[name].push(value);
  };
  let [rss, pss] = [0, 0];
  for (const [name, pid] of Object.entries(await meshProcesses(mesh))) {
    const memory = await residentMemory(pid);
    add(name, memory.rss);
    rss += memory.rss;
    pss += memory.pss;
  }
  add(all, rss);
  add(allShared, pss);
}

async function connectDevices(mesh: TestMesh): Promise<void> {
  const devices = await createDevices(mesh, count);
  await Promise.all(
    devices.map(async ({ id, token }) => {
      const device = await connectMqttDevice({ url: mesh.mqttUrl, id, token });
      // What Mongoose OS firmware subscribes.
      await device.subscribe(`${id}/rpc`);
      await device.subscribe(`${id}/shadow/delta`, 1);
    }),
  );
}

const withDevices = `with ${count} devices`;
reportFigures(
  [
    { name: "idle", figures: idle },
    { name: withDevices, figures: connected },
  ].flatMap(({ name, figures }) =>
    Object.entries(figures).map(([part, values]): Figure => {
      const limit = name === "idle" ? idleLimits[part] : undefined;
      return { name: `MB of ${part}`, ours: { name, values }, ...(limit && { goal: { value: limit } }) };
    }),
  ),
);
