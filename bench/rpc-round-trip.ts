/**
 * A call of a device's function over HTTP through the mesh, against MQTT.js calling the same device over the same
 * broker. `node bench/rpc-round-trip.ts [seconds]`
 */
import { startMesh } from "@devmesh/testkit/mesh";
import { connectMqttDevice } from "@devmesh/testkit/mqtt-device";
import { startChild } from "./child.ts";
import { loadHttp } from "./http-load.ts";
import { inTurns, median, report } from "./measure.ts";
import { brokerPassword, createDevices } from "./mesh-tenant.ts";
import { cpuSeconds, meshProcesses } from "./process-usage.ts";

const forMs = Number(process.argv[2] ?? 3) * 1000;
const rounds = 5;
const params = { pin: 12, state: true };
/** The only user of the broker that may publish to devices and receive their replies. */
const bridgeUser = "rpc-bridge.devices";

await using mesh = await startMesh({ env: { RATE_MASTER: "1000000" } });
const [device] = await createDevices(mesh, 1);
if (device === undefined) throw new Error("there is no device");
const bridgePassword = await brokerPassword(mesh, bridgeUser);

await using echo = startChild(import.meta.resolve("./rpc-round-trip/echo-device.ts"), {
  BENCH_MQTT_URL: mesh.mqttUrl,
  BENCH_DEVICE_ID: device.id,
  BENCH_DEVICE_TOKEN: device.token,
});
await echo.ready;
await using asker = await connectMqttDevice({
  url: mesh.mqttUrl,
  id: bridgeUser,
  token: bridgePassword,
  clientId: "_bench",
});
const waiting = new Map<number, () => void>();
asker.client.on("message", (_topic, payload) => {
  const { id } = JSON.parse(payload.toString("utf8"));
  waiting.get(id)?.();
});
await asker.subscribe("+/r/bench/rpc");
let lastId = 0;

function askDirectly(deviceId: string): Promise<void> {
  const id = ++lastId;
  const frame = JSON.stringify({ id, src: `${deviceId}/r/bench`, method: "Echo", params });
  return new Promise((resolve) => {
    waiting.set(id, () => {
      waiting.delete(id);
      resolve();
    });
    asker.client.publish(`${deviceId}/rpc`, frame);
  });
}

/** Rates and latencies, with one call in flight and with 100. */
async function measure(side: (inFlight: number) => Promise<readonly number[]>) {
  const alone = await side(1);
  const pids = Object.values(await meshProcesses(mesh));
  const before = await cpuSeconds(pids);
  const begin = performance.now();
  const crowded = await side(100);
  const seconds = (performance.now() - begin) / 1000;
  return {
    "p50 alone, ms": median(alone),
    "p50 with 100 in flight, ms": median(crowded),
    "calls/s with 100 in flight": crowded.length / seconds,
    "calls per CPU second of the mesh": crowded.length / ((await cpuSeconds(pids)) - before),
  };
}

const measured = await inTurns(rounds, {
  "HTTP to device and back": () =>
    measure(async (connections) => {
      const { latenciesMs } = await loadHttp({
        url: `${mesh.url}/api/v2/devices/${device.id}/rpc/Echo`,
        method: "POST",
        headers: { Authorization: `Bearer ${mesh.masterKey}` },
        body: JSON.stringify(params),
        connections,
        forMs,
      });
      return latenciesMs;
    }),
  "MQTT.js to device and back": () =>
    measure(async (inFlight) => {
      const latencies: number[] = [];
      const end = performance.now() + forMs;
      const work = async () => {
        while (performance.now() < end) {
          const begin = performance.now();
          await askDirectly(device.id);
          latencies.push(performance.now() - begin);
        }
      };
      await Promise.all(Array.from({ length: inFlight }, work));
      return latencies;
    }),
});
console.log(`median (min–max) of ${rounds} rounds of ${forMs / 1000} s`);
report(measured, { ours: "HTTP to device and back", peer: "MQTT.js to device and back", digits: 2 });
