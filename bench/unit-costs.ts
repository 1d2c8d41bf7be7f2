/**
 * What one connected device, record, shadow update and call cost the processes of a mesh: constants of `capacity.ts`.
 * `node bench/unit-costs.ts [devices] [sqlite|mongodb] [own|cluster]`; of a cluster the first nats-server is measured.
 */
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startMesh } from "@devmesh/testkit/mesh";
import { connectMqttDevice } from "@devmesh/testkit/mqtt-device";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { startChild } from "./child.ts";
import { loadHttp } from "./http-load.ts";
import { handledBy, untilHandled } from "./ingestion/handled.ts";
import { type PublishedCount, publish } from "./ingestion/publisher.ts";
import { reportFigures } from "./measure.ts";
import { createDevices, withoutRateLimits } from "./mesh-tenant.ts";
import { cpuSeconds, residentMemory } from "./process-usage.ts";

const count = Number(process.argv[2] ?? 1_000);
const store = process.argv[3] === "mongodb" ? "mongodb" : "sqlite";
const broker = process.argv[4] === "cluster" ? "cluster" : "own";
/** Messages of a round beyond one of each device, which also pays for its login. */
const messagesBeyond: Readonly<Record<PublishedCount, number>> = { records: 20_000, shadow: 5_000 };
const rounds = 3;
const callsMs = 3_000;
const idleMs = 15_000;
/** Time to collect garbage, and for what follows from a message. */
const settleMs = 4_000;
const connectsAtATime = 20;

await using folder = await tempFolder();
const dataDir = join(folder.path, "mesh");
await using mesh = await startMesh({ store, broker, dataDir, env: withoutRateLimits });
const parts = ["nats-server", "gateway", "keys", "devices", "data", "rpc-bridge"] as const;

type OfParts = Readonly<Record<string, number>>;

/** A figure of each process, whose name begins with its unit. */
async function ofParts(unit: string, figure: (pid: number) => Promise<number>): Promise<OfParts> {
  const each = parts.map(
    async (part) => [`${unit} of ${part}`, await figure(await mesh.pidOf(part))] as const,
  );
  return Object.fromEntries(await Promise.all(each));
}

/** Microseconds of each process, and bytes that nats-server reads from and writes to sockets and files. */
async function spent(): Promise<OfParts> {
  const micros = await ofParts("µs", async (pid) => (await cpuSeconds([pid])) * 1e6);
  const io = await readFile(`/proc/${await mesh.pidOf("nats-server")}/io`, "utf8");
  const bytes = [...io.matchAll(/^[rw]char: (\d+)/gm)].reduce((sum, [, some]) => sum + Number(some), 0);
  return { ...micros, "bytes of nats-server": bytes };
}

const subtract = (these: OfParts, those: OfParts, by = 1): OfParts =>
  Object.fromEntries(Object.entries(these).map(([part, value]) => [part, (value - (those[part] ?? 0)) / by]));

/** What a work takes. */
async function spentBy(work: () => Promise<unknown>): Promise<OfParts> {
  const before = await spent();
  await work();
  return subtract(await spent(), before);
}

const values: Record<string, number[]> = {};
const add = (name: string, of: OfParts) => {
  for (const [part, value] of Object.entries(of)) {
    values[`${name}: ${part}`] ??= [];
    values[`${name}: ${part}`]?.push(value);
  }
};

const memory = async () => {
  await sleep(settleMs);
  return await ofParts("KB", async (pid) => (await residentMemory(pid)).rss * 1e3);
};
const idle = () => sleep(idleMs);
const [idleMemory, idleCost] = [await memory(), await spentBy(idle)];
add("idle", idleMemory);
add("second", subtract(idleCost, {}, idleMs / 1_000));

const devices = await createDevices(mesh, count);
{
  await using connections = new AsyncDisposableStack();
  const waiting = devices.values();
  const work = async () => {
    for (const { id, token } of waiting) {
      const device = connections.use(await connectMqttDevice({ url: mesh.mqttUrl, id, token }));
      // What Mongoose OS firmware subscribes.
      await device.subscribe(`${id}/rpc`);
      await device.subscribe(`${id}/shadow/delta`, 1);
    }
  };
  await Promise.all(Array.from({ length: connectsAtATime }, work));
  add("connected device", subtract(await memory(), idleMemory, count));
  add("second of a connected device", subtract(await spentBy(idle), idleCost, (count * idleMs) / 1_000));
}

const publishers = devices.map((device) => ({ ...device, clientId: device.id }));
const options = { port: mesh.ports.mqtt, folder: folder.path, publishers, inFlight: 1_000 };
for (let round = 0; round < rounds; round++) {
  for (const [name, kind] of [["record", "records"] as const, ["update", "shadow"] as const]) {
    const publishing = (messages: number) => async () => {
      const before = await handledBy(mesh, kind);
      const published = await publish({ ...options, kind, messages });
      await untilHandled(mesh, kind, before + published.messages);
      await sleep(settleMs);
    };
    const once = await spentBy(publishing(count));
    add(`login and ${name}`, subtract(once, {}, count));
    add(name, subtract(await spentBy(publishing(count + messagesBeyond[kind])), once, messagesBeyond[kind]));
  }
}

const [{ id = "", token = "" } = {}] = devices;
await using echo = startChild(import.meta.resolve("./rpc-round-trip/echo-device.ts"), {
  BENCH_MQTT_URL: mesh.mqttUrl,
  BENCH_DEVICE_ID: id,
  BENCH_DEVICE_TOKEN: token,
});
await echo.ready;
const headers = { Authorization: `Bearer ${mesh.masterKey}` };
const url = `${mesh.url}/api/v2/devices/${id}/rpc/Echo`;
for (let round = 0; round < rounds; round++) {
  let calls = 0;
  const load = {
    url,
    method: "POST",
    headers,
    body: `{"pin":12}`,
    connections: 100,
    forMs: callsMs,
  } as const;
  const cost = await spentBy(async () => {
    calls = (await loadHttp(load)).latenciesMs.length;
  });
  add("call", subtract(cost, {}, calls));
}

await mesh.stop();
if (store === "sqlite") {
  const bytes = async (file: string) => (await stat(join(dataDir, file))).size;
  const records = rounds * (2 * count + messagesBeyond.records);
  add("device, bytes", {
    "devices.db and keys.db": ((await bytes("devices.db")) + (await bytes("keys.db"))) / count,
  });
  add("record", { "bytes of data.db": (await bytes("data.db")) / records });
}
reportFigures(
  Object.entries(values).map(([name, all]) => ({ name, ours: { name: `${store}, ${broker}`, values: all } })),
);
