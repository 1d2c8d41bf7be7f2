/**
 * Resident memory of each process of a mesh as `npm start` runs it, idle and with 200 devices, against a limit
 * for all that idle. `node bench/memory.ts [devices]`
 */
import { setTimeout as sleep } from "node:timers/promises";
import { startMesh } from "@devmesh/testkit/mesh";
import { connectMqttDevice } from "@devmesh/testkit/mqtt-device";
import { type Figure, inTurns, type Rounds, reportFigures } from "./measure.ts";
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
await using mesh = await startMesh({ through: "run.mjs" });
const devices = await createDevices(mesh, count);

async function measure(): Promise<Record<string, number>> {
  await sleep(settleMs);
  const figures: Record<string, number> = {};
  let [rss, pss] = [0, 0];
  for (const [name, pid] of Object.entries(await meshProcesses(mesh))) {
    const memory = await residentMemory(pid);
    figures[name] = memory.rss;
    rss += memory.rss;
    pss += memory.pss;
  }
  return { ...figures, [all]: rss, [allShared]: pss };
}

async function measureConnected(): Promise<Record<string, number>> {
  const connected = await Promise.all(
    devices.map(async ({ id, token }) => {
      const device = await connectMqttDevice({ url: mesh.mqttUrl, id, token });
      // What Mongoose OS firmware subscribes.
      await device.subscribe(`${id}/rpc`);
      await device.subscribe(`${id}/shadow/delta`, 1);
      return device;
    }),
  );
  const figures = await measure();
  await Promise.all(connected.map((device) => device.leave()));
  return figures;
}

const measured: Rounds<string, string> = await inTurns(rounds, {
  idle: measure,
  connected: measureConnected,
});
console.log(`resident MB, median (min–max) of ${rounds} rounds`);
const withDevices = `with ${count} devices`;
reportFigures(
  [
    { name: "idle", figures: measured.idle ?? {} },
    { name: withDevices, figures: measured.connected ?? {} },
  ].flatMap(({ name, figures }) =>
    Object.entries(figures).map(([part, values]): Figure => {
      const limit = name === "idle" ? idleLimits[part] : undefined;
      return { name: `MB of ${part}`, ours: { name, values }, ...(limit && { goal: { value: limit } }) };
    }),
  ),
);
