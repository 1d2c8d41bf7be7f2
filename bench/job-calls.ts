/**
 * A job that calls a function of many connected devices, against bare calls of `rpc-bridge` with as many in flight.
 * `node bench/job-calls.ts [devices]`
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { rpcBridge } from "@devmesh/contracts/rpc-bridge";
import { connectBus } from "@devmesh/service-kit/bus";
import { createClient } from "@devmesh/service-kit/rpc/client";
import { createCallContext } from "@devmesh/service-kit/rpc/context";
import { startMesh } from "@devmesh/testkit/mesh";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { startChild } from "./child.ts";
import { inTurns, reportFigures } from "./measure.ts";
import { brokerPassword, createDevices, numbers, withoutRateLimits } from "./mesh-tenant.ts";
import { cpuSeconds, meshProcesses } from "./process-usage.ts";

const count = Number(process.argv[2] ?? 1_000);
const inFlight = 500;
const rounds = 3;

await using folder = await tempFolder();
await using mesh = await startMesh({
  store: "sqlite",
  broker: "own",
  env: { ...withoutRateLimits, JOBS_IN_FLIGHT: String(inFlight) },
});
const devices = await createDevices(mesh, count);
const list = join(folder.path, "devices.json");
await writeFile(list, JSON.stringify(devices));
await using child = startChild(import.meta.resolve("./job-calls/answering-devices.ts"), {
  MQTT_URL: mesh.mqttUrl,
  DEVICES: list,
});
await child.ready;
const ids = devices.map(({ id }) => id);
const user = "gateway.mesh";
const password = await brokerPassword(mesh, "gateway");
await using stack = new AsyncDisposableStack();
const bus = await connectBus({
  url: `nats://127.0.0.1:${mesh.ports.nats}`,
  name: "gateway",
  user,
  password,
});
stack.defer(() => bus.close());
const bridge = createClient(bus, { contract: rpcBridge, methods: ["call"] });

async function callAll(): Promise<void> {
  const next = numbers(count);
  const work = async () => {
    for (const nth of next) {
      using context = createCallContext({ timeoutMs: 20_000 });
      await bridge.call({ device_id: ids[nth] ?? "", method: "Echo", timeout_ms: 10_000 }, context);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, work));
}

async function runJob(): Promise<void> {
  const job = {
    target: { where: { online: true } },
    action: { kind: "rpc", func: "Echo" },
    rollout: { concurrency: inFlight },
  };
  const created = await mesh.http("/api/v2/jobs", { body: job });
  if (created.status !== 201) throw new Error(`the job: ${created.status} ${created.text}`);
  const { id } = created.json as { readonly id: string };
  for (;;) {
    await sleep(100);
    const { json } = await mesh.http(`/api/v2/jobs/${id}`, {});
    const { state, counts } = json as { readonly state: string; readonly counts: Record<string, number> };
    if (state !== "done") continue;
    if (counts.succeeded !== count) throw new Error(`the job ended with ${JSON.stringify(counts)}`);
    return;
  }
}

const pids = Object.values(await meshProcesses(mesh));
const measured = (work: () => Promise<void>) => async () => {
  const [began, before] = [performance.now(), await cpuSeconds(pids)];
  await work();
  const seconds = (performance.now() - began) / 1_000;
  return { perSecond: count / seconds, cpuMs: (((await cpuSeconds(pids)) - before) * 1_000) / count };
};
const { job, bare } = await inTurns(rounds, { job: measured(runJob), bare: measured(callAll) });
const title = `${count} devices, ${inFlight} in flight`;
reportFigures([
  {
    name: `${title}: calls/s`,
    ours: { name: "job", values: job.perSecond },
    peer: { name: "rpc-bridge alone", values: bare.perSecond },
    goal: { ratio: 0.5 },
  },
  {
    name: `${title}: ms of processor time of the mesh a call`,
    ours: { name: "job", values: job.cpuMs },
    peer: { name: "rpc-bridge alone", values: bare.cpuMs },
    digits: 2,
  },
]);
