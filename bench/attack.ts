/**
 * The cost to others of a stranger without a key over HTTP, and of a device with a leaked token beside an
 * idle fleet: one device publishes, is called and is read, first alone, then during an attack by another.
 * `node bench/attack.ts [seconds of an attack] [part of its name] [sizes of fleets, as 3000,10000] [haproxy]`
 */
import { eventually } from "@devmesh/testkit/eventually";
import { connectIdleFleet } from "@devmesh/testkit/idle-fleet";
import { startMesh } from "@devmesh/testkit/mesh";
import { connectMqttDevice } from "@devmesh/testkit/mqtt-device";
import { findHaproxy, startMqttProxy, type TestMqttProxy, withoutHaproxy } from "@devmesh/testkit/mqtt-proxy";
import { measureStrangers } from "./attack/strangers-http.ts";
import { startChild } from "./child.ts";
import { p99, reportFigures } from "./measure.ts";
import { type Credentials, createDevices } from "./mesh-tenant.ts";
import { type Latencies, steadily } from "./steady-load.ts";

const attackMs = Number(process.argv[2] ?? 10) * 1000;
const quietMs = attackMs / 2;
const chosen = process.argv[3] ?? "";
const fleets = (process.argv[4] ?? "3000,10000").split(",").map(Number);

interface Attack {
  readonly name: string;
  /** The module that runs it, and its environment. */
  readonly module: "flood" | "sessions";
  readonly env: (id: string) => Record<string, string>;
}

const flood = (
  name: string,
  topic: (id: string) => string,
  qos: 0 | 1,
  bytes: number,
  connections = 1,
  lifeMs = 0,
): Attack => ({
  name,
  module: "flood",
  env: (id) => ({
    BENCH_TOPIC: topic(id),
    BENCH_QOS: String(qos),
    BENCH_BYTES: String(bytes),
    BENCH_CONNECTIONS: String(connections),
    BENCH_LIFE_MS: String(lifeMs),
  }),
});
const storm = (name: string, kind: "ping" | "subscribe", qos: 0 | 1, connections: number): Attack => ({
  name,
  module: "flood",
  env: () => ({ BENCH_PACKETS: kind, BENCH_QOS: String(qos), BENCH_CONNECTIONS: String(connections) }),
});
const all: readonly Attack[] = [
  flood("replies at QoS 0, 20 bytes", (id) => `${id}/r/rpc`, 0, 20),
  flood("events at QoS 0, 20 bytes", (id) => `${id}/event/x`, 0, 20),
  flood("records at QoS 1, 100 KB, three connections", (id) => `db/${id}/blob`, 1, 100_000, 3),
  flood("records at QoS 0, 20 bytes", (id) => `db/${id}/n`, 0, 20),
  flood("short connections, QoS 0, 20 bytes", (id) => `db/${id}/n`, 0, 20, 8, 120),
  flood("short connections, QoS 1, 100 KB", (id) => `db/${id}/blob`, 1, 100_000, 8, 120),
  flood("200 connections, QoS 1, 1 KB", (id) => `db/${id}/kb`, 1, 1_000, 200),
  storm("subscriptions at QoS 0", "subscribe", 0, 20),
  storm("subscriptions at QoS 1", "subscribe", 1, 20),
  storm("pings", "ping", 0, 20),
  { name: "kept sessions with filters at QoS 1", module: "sessions", env: () => ({}) },
];
const attacks = all.filter(({ name }) => name.includes(chosen));

// A quiet machine creates devices faster than a key may.
await using mesh = await startMesh({ env: { RATE_MASTER: "1000000" } });
await using proxy = process.argv[5] === "haproxy" ? await startProxy() : null;
const mqttUrl = proxy === null ? mesh.mqttUrl : `mqtt://127.0.0.1:${proxy.port}`;
const idle = attacks.length === 0 ? 0 : Math.max(...fleets);
const [calm, ...others] = await createDevices(mesh, 1 + attacks.length * fleets.length + idle);
if (calm === undefined) throw new Error("there are no devices");
await measureStrangers(mesh, chosen, attackMs);
const attackers = others.splice(0, attacks.length * fleets.length);
await using echo = startChild(import.meta.resolve("./rpc-round-trip/echo-device.ts"), loginOf(calm));
await echo.ready;
await using publisher = await connectMqttDevice({
  url: mqttUrl,
  ...calm,
  clientId: `${calm.id}:publisher`,
});

/** The idle fleet does without it, for its file descriptors. */
async function startProxy(): Promise<TestMqttProxy> {
  const haproxy = await findHaproxy();
  if (haproxy === null) throw new Error(withoutHaproxy);
  return await startMqttProxy(haproxy, { port: mesh.ports.mqtt });
}

function loginOf({ id, token }: Credentials): Record<string, string> {
  return { BENCH_MQTT_URL: mqttUrl, BENCH_DEVICE_ID: id, BENCH_DEVICE_TOKEN: token };
}

async function expectOk(path: string, body?: object): Promise<void> {
  const { status, text } = await mesh.http(path, body === undefined ? {} : { body });
  if (status !== 200) throw new Error(`answered ${status} ${text}`);
}

/** What the calm device does for a while. Every acknowledged record must be stored in the end. */
async function work(phase: string, forMs: number): Promise<Record<"publish" | "call" | "read", Latencies>> {
  const { id } = calm as Credentials;
  const end = performance.now() + forMs;
  const goesOn = (now: number) => now < end;
  let count = 0;
  const [publish, call, read] = await Promise.all([
    steadily({ perSecond: 20, inFlight: 1, goesOn }, () =>
      publisher.publish(`db/${id}/${phase}`, String(count++), 1),
    ),
    steadily({ perSecond: 10, inFlight: 100, goesOn }, () =>
      expectOk(`/api/v2/devices/${id}/rpc/Echo`, { phase }),
    ),
    steadily({ perSecond: 10, inFlight: 100, goesOn }, () => expectOk(`/api/v2/devices/${id}`)),
  ]);
  return { publish, call, read };
}

/** Number of distinct stored records of a phase. */
async function storedIn(phase: string): Promise<number> {
  const { json } = await mesh.http(`/api/v2/data?device_id=${calm?.id}&filter=${phase}&limit=5000`);
  const records = json as { topic: string; message: string }[];
  return new Set(records.filter(({ topic }) => topic.endsWith(`/${phase}`)).map(({ message }) => message))
    .size;
}

/** Waits until all records of a phase are stored; returns how many are missing in the end. */
async function missing(phase: string, count: number): Promise<number> {
  await eventually(async () => (await storedIn(phase)) >= count, { withinMs: 180_000, everyMs: 250 }).catch(
    () => undefined,
  );
  return count - (await storedIn(phase));
}

/** Runs the attack beside the fleet and reports its figures. */
async function measure(attack: Attack, attacker: Credentials, fleet: number): Promise<void> {
  const name = `${attack.name}, ${fleet} devices`;
  const [quietly, attacked] = [`quiet-${attacker.id}`, `attacked-${attacker.id}`];
  const quiet = await work(quietly, quietMs);
  quiet.publish.lost += await missing(quietly, quiet.publish.ms.length);
  await using child = startChild(import.meta.resolve(`./attack/${attack.module}.ts`), {
    ...loginOf(attacker),
    BENCH_MS: String(attackMs),
    ...attack.env(attacker.id),
  });
  const beside = await work(attacked, attackMs);
  const report = await child.ready;
  beside.publish.lost += await missing(attacked, beside.publish.ms.length);
  console.log(`${name}: ${report}`);
  for (const kind of ["publish", "call", "read"] as const) {
    const [before, after] = [quiet[kind], beside[kind]];
    reportFigures([
      {
        name: `${kind}, p99, ms`,
        ours: { name, values: [p99(after.ms)] },
        peer: { name: "quiet", values: [p99(before.ms)] },
        goal: { ratio: 5 },
        digits: 1,
      },
      {
        name: `${kind}, lost`,
        ours: { name, values: [after.lost] },
        peer: { name: "quiet", values: [before.lost] },
        goal: { value: 0 },
      },
    ]);
    for (const reason of new Set([...before.reasons, ...after.reasons])) console.log(`    ${reason}`);
  }
}

await using connected = new AsyncDisposableStack();
let size = 0;
for (const [nth, fleet] of attacks.length === 0 ? [] : fleets.entries()) {
  connected.use(await connectIdleFleet(mesh.mqttUrl, others.slice(size, fleet)));
  size = fleet;
  // Compiles the code.
  await work("warm-up", 5_000);
  for (const [at, attack] of attacks.entries())
    await measure(attack, attackers[nth * attacks.length + at] as Credentials, fleet);
}
