/**
 * A call of a device's function over HTTP through the mesh, against Express with MQTT.js, which does the same over the
 * same broker, and MQTT.js alone, without HTTP. `node bench/rpc-round-trip.ts [seconds]`
 */
import { open } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startMesh, type TestMesh } from "@devmesh/testkit/mesh";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { bridgeUser, connectDirectCaller } from "./device-calls.ts";
import { loadHttp } from "./http-load.ts";
import { inTurns, median, p99, report, reportFigures } from "./measure.ts";
import { startMeshBefore } from "./mesh-before.ts";
import { brokerPassword, startEchoDevice, withoutRateLimits } from "./mesh-tenant.ts";
import { installPeers, startPeer } from "./peer.ts";
import { digestOf } from "./peers/key-check.ts";
import { createPeerStore } from "./peers/store.ts";
import { cpuSeconds, meshProcesses } from "./process-usage.ts";

const forMs = Number(process.argv[2] ?? 3) * 1000;
const rounds = 5;
const crowd = 100;
const echoed = { pin: 12, state: true };
const params = JSON.stringify(echoed);
const alone = "p50 alone, ms";
const crowded = { p50: `p50 of ${crowd} in flight, ms`, p99: `p99 of ${crowd} in flight, ms` };
const callsPerSecond = `calls/s, ${crowd} in flight`;
const callsPerCpuSecond = "calls per CPU second of all processes";

await installPeers();
await using folder = await tempFolder();
await using stack = new AsyncDisposableStack();

/** Starts a mesh with a device `bench-0` that answers. */
async function startCalledMesh(start: typeof startMesh): Promise<TestMesh> {
  const mesh = stack.use(await start({ store: "sqlite", broker: "own", env: withoutRateLimits }));
  stack.use(await startEchoDevice(mesh));
  return mesh;
}

const mesh = await startCalledMesh(startMesh);
const bridgePassword = await brokerPassword(mesh, bridgeUser);
const brokerPid = await mesh.pidOf("nats-server");

const storePath = join(folder.path, "peer.db");
createPeerStore(storePath, { id: "bench-0" }, digestOf(mesh.masterKey));
await using log = await open(join(folder.path, "access.log"), "a");
await using express = startPeer(
  "express-mqtt",
  {
    BENCH_STORE: storePath,
    BENCH_MQTT_URL: mesh.mqttUrl,
    BENCH_MQTT_USER: bridgeUser,
    BENCH_MQTT_PASSWORD: bridgePassword,
  },
  log.fd,
);
const expressUrl = `http://127.0.0.1:${await express.ready}`;

const asker = stack.use(await connectDirectCaller(mesh));
const askDirectly = () => asker.call("bench-0", "Echo", echoed);

/** Latencies of MQTT.js alone. */
async function loadDirectly(inFlight: number): Promise<readonly number[]> {
  const latencies: number[] = [];
  const end = performance.now() + forMs;
  const work = async () => {
    while (performance.now() < end) {
      const begin = performance.now();
      await askDirectly();
      latencies.push(performance.now() - begin);
    }
  };
  const late = sleep(2 * forMs + 5_000, undefined, { ref: false }).then(() => {
    throw new Error("the device does not answer");
  });
  await Promise.race([Promise.all(Array.from({ length: inFlight }, work)), late]);
  return latencies;
}

/** Latencies of calls over HTTP, all of which must be answered with the parameters. */
async function loadOverHttp(url: string, { masterKey }: TestMesh) {
  const path = `${url}/api/v2/devices/bench-0/rpc/Echo`;
  const headers = { Authorization: `Bearer ${masterKey}` };
  const answer = await fetch(path, {
    method: "POST",
    headers: { ...headers, "Content-Type": "application/json" },
    body: params,
  });
  if ((await answer.text()) !== params) throw new Error(`another answer: ${answer.status}`);
  return async (connections: number) =>
    (await loadHttp({ url: path, method: "POST", headers, body: params, connections, forMs })).latenciesMs;
}

type RoundFigures = Readonly<Record<string, number>>;

/** Rates and latencies, with one call in flight and with many; the processor time that `pids` take for these. */
async function measure(
  load: (inFlight: number) => Promise<readonly number[]>,
  pids: readonly number[] | null,
): Promise<RoundFigures> {
  const single = await load(1);
  const cpuBefore = pids && (await cpuSeconds(pids));
  const begin = performance.now();
  const many = await load(crowd);
  const seconds = (performance.now() - begin) / 1000;
  return {
    [alone]: median(single),
    [crowded.p50]: median(many),
    [crowded.p99]: p99(many),
    [callsPerSecond]: many.length / seconds,
    ...(pids && { [callsPerCpuSecond]: many.length / ((await cpuSeconds(pids)) - (cpuBefore ?? 0)) }),
  };
}

async function overHttp(
  url: string,
  mesh: TestMesh,
  pids: readonly number[],
): Promise<() => Promise<RoundFigures>> {
  const load = await loadOverHttp(url, mesh);
  return () => measure(load, pids);
}

const throughMesh = async (mesh: TestMesh) =>
  await overHttp(mesh.url, mesh, Object.values(await meshProcesses(mesh)));

const ours = "mesh";
const before = "mesh before";
const overExpress = "Express and MQTT.js";
const directly = "MQTT.js alone";
const startBefore = await startMeshBefore();
const contenders: Record<string, () => Promise<RoundFigures>> = {
  [ours]: await throughMesh(mesh),
  ...(startBefore && { [before]: await throughMesh(await startCalledMesh(startBefore)) }),
  [overExpress]: await overHttp(expressUrl, mesh, [express.pid, brokerPid]),
  // The caller is this process, which also generates the load: its time is not counted.
  [directly]: () => measure(loadDirectly, null),
};
const measured = await inTurns(rounds, contenders);
const valuesOf = (contender: string, figure: string) => measured[contender]?.[figure] ?? [];

console.log(`median (min–max) of ${rounds} rounds of ${forMs / 1000} s`);
if (startBefore)
  report(measured, { ours, peer: before, goals: { [callsPerCpuSecond]: { ratio: 2.5 } }, digits: 2 });
report(measured, { ours, peer: overExpress, goals: { [callsPerCpuSecond]: { ratio: 0.65 } }, digits: 2 });
report(measured, { ours, peer: directly, goals: { [callsPerSecond]: { ratio: 0.3 } }, digits: 2 });
const [bare, p50] = [valuesOf(directly, alone), valuesOf(ours, crowded.p50)];
reportFigures([
  {
    name: `${alone}, beyond ${directly}`,
    ours: { name: ours, values: valuesOf(ours, alone).map((ms, round) => ms - (bare[round] ?? Number.NaN)) },
    goal: { value: 1 },
    digits: 2,
  },
  {
    name: crowded.p99,
    ours: { name: ours, values: valuesOf(ours, crowded.p99) },
    peer: { name: crowded.p50, values: p50 },
    goal: { ratio: 3 },
    digits: 2,
  },
]);
