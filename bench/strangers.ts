/**
 * What strangers without a login cost, with HAProxy in front of MQTT and without it: memory of nats-server, and the
 * time of right logins from another address. Then what HAProxy costs devices. Each attack has a new mesh.
 * `node bench/strangers.ts [part of the attacks in percent]`
 */
import { setTimeout as sleep } from "node:timers/promises";
import { startMesh, type TestMesh } from "@devmesh/testkit/mesh";
import { connectMqttDevice, type MqttDevice } from "@devmesh/testkit/mqtt-device";
import { findHaproxy, startMqttProxy, withoutHaproxy } from "@devmesh/testkit/mqtt-proxy";
import { logIn, longNames, type StrangersTarget, unfinishedConnects } from "@devmesh/testkit/strangers";
import { startChild } from "./child.ts";
import { median, reportFigures } from "./measure.ts";
import { createDevices } from "./mesh-tenant.ts";
import { cpuSeconds, largestResidentMemory, meshProcesses, residentMemory } from "./process-usage.ts";

const part = Number(process.argv[2] ?? 100) / 100;
const [home, stranger] = ["127.0.0.1", "127.0.0.2"];
const floodMs = 8_000;
const lostMs = 15_000;
const contenders = ["HAProxy", "none"] as const;
type Contender = (typeof contenders)[number];

const haproxy = await findHaproxy();
if (haproxy === null) throw new Error(withoutHaproxy);

/** Runs a measurement on a new mesh, through HAProxy or not. */
async function on<T>(
  contender: Contender,
  measure: (mesh: TestMesh, port: number, proxyPid: number) => Promise<T>,
): Promise<T> {
  await using mesh = await startMesh();
  await using proxy = await startMqttProxy(haproxy ?? "", { port: mesh.ports.mqtt });
  return await measure(mesh, contender === "HAProxy" ? proxy.port : mesh.ports.mqtt, proxy.pid);
}

/** Runs a measurement with both and reports it. */
async function compare(name: string, goal: number, measure: (contender: Contender) => Promise<number>) {
  const [ours, peer] = [await measure("HAProxy"), await measure("none")];
  reportFigures([
    {
      name,
      ours: { name: "HAProxy", values: [ours] },
      peer: { name: "none", values: [peer] },
      goal: { value: goal },
    },
  ]);
}

async function brokerMegabytes(mesh: TestMesh): Promise<number> {
  return await largestResidentMemory((await meshProcesses(mesh))["nats-server"] ?? Number.NaN);
}

type StrangersAttack = (target: StrangersTarget, count: number) => Promise<void>;
const attacks: readonly (readonly [name: string, attack: StrangersAttack, count: number])[] = [
  ["unfinished CONNECTs of 900 KB", unfinishedConnects, Math.round(1_500 * part)],
  ["CONNECTs with names of 60 KB", longNames, Math.round(2_000 * part)],
];
for (const [name, attack, count] of attacks) {
  await compare(`nats-server, ${count} ${name}, MB`, 300, (contender) =>
    on(contender, async (mesh, port) => {
      await attack({ port, from: stranger }, count);
      return await brokerMegabytes(mesh);
    }),
  );
}

await compare("right logins beside 2,000 wrong ones a second, longest, ms", 500, (contender) =>
  on(contender, async (mesh, port) => {
    const devices = await createDevices(mesh, 4);
    await using child = startChild(import.meta.resolve("./strangers/wrong-logins.ts"), {
      BENCH_PORT: String(port),
      BENCH_RATE: "2000",
      BENCH_MS: String(floodMs),
    });
    await sleep(500);
    const waits: number[] = [];
    for (const end = performance.now() + floodMs; performance.now() < end; await sleep(200)) {
      const { id = "", token = "" } = devices[waits.length % devices.length] ?? {};
      waits.push((await logIn({ port, from: home }, id, token, lostMs)) ?? lostMs);
    }
    console.log(`${contender}: ${waits.length} right logins, p50 ${median(waits).toFixed(0)} ms`);
    await child.ready;
    return Math.max(...waits);
  }),
);

/** Round trips of a QoS 1 publication in turns of the two, and the processor time of HAProxy for them. */
await on("HAProxy", async (mesh, port, proxyPid) => {
  const [device, ...idle] = await createDevices(mesh, 401);
  const connectTo = (to: number, { id, token }: { id: string; token: string }, suffix: string) =>
    connectMqttDevice({ url: `mqtt://127.0.0.1:${to}`, id, token, clientId: `${id}:${suffix}` });
  if (device === undefined) throw new Error("there is no device");
  const links = [
    ["HAProxy", await connectTo(port, device, "a")],
    ["none", await connectTo(mesh.ports.mqtt, device, "b")],
  ] as const satisfies readonly (readonly [Contender, MqttDevice])[];
  const times: Record<Contender, number[]> = { HAProxy: [], none: [] };
  const cpuBefore = await cpuSeconds([proxyPid]);
  for (let n = 0; n < 3_000; n++) {
    for (const [name, link] of n % 2 === 0 ? links : links.toReversed()) {
      const begin = performance.now();
      await link.publish(`db/${device.id}/n`, "21.5", 1);
      times[name].push(performance.now() - begin);
    }
  }
  const cpuMs = ((await cpuSeconds([proxyPid])) - cpuBefore) * 1_000;
  const before = await residentMemory(proxyPid);
  const connected = await Promise.all(idle.map((other) => connectTo(port, other, "idle")));
  await sleep(2_000);
  const kilobytes = ((await residentMemory(proxyPid)).rss - before.rss) * 1_000;
  reportFigures([
    {
      name: "publication at QoS 1, median, ms",
      ours: { name: "HAProxy", values: [median(times.HAProxy)] },
      peer: { name: "none", values: [median(times.none)] },
      goal: { ratio: 2 },
      digits: 2,
    },
    {
      name: "processor time of HAProxy for 1,000 publications, ms",
      ours: { name: "HAProxy", values: [cpuMs / 3] },
    },
    {
      name: "memory of HAProxy for a connection, KB",
      ours: { name: "HAProxy", values: [kilobytes / connected.length] },
      digits: 1,
    },
  ]);
  await Promise.all([...connected, links[0][1], links[1][1]].map((link) => link.leave()));
});
