/**
 * Records stored a second of what devices publish at QoS 1, by one device and by 1,000, against what nats-server alone
 * acknowledges without a consumer, which stores nothing. `node bench/ingestion.ts [messages a round] [devices, …]`
 */
import { setTimeout as sleep } from "node:timers/promises";
import { startMesh, type TestMesh } from "@devmesh/testkit/mesh";
import { startNatsServer } from "@devmesh/testkit/nats-server";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { startChild } from "./child.ts";
import { type Publisher, type PublishReport, writePublishers } from "./ingestion/publisher.ts";
import { inTurns, report } from "./measure.ts";
import { startMeshBefore } from "./mesh-before.ts";
import { createDevices } from "./mesh-tenant.ts";
import { cpuSeconds, meshProcesses } from "./process-usage.ts";

const messages = Number(process.argv[2] ?? 60_000);
const rounds = 3;
const fleets = (process.argv[3] ?? "1,1000").split(",").map(Number);
/** Unacknowledged messages of all devices. */
const inFlight = 1_000;
/** Rendering metrics costs the service milliseconds. */
const pollMs = 100;
const ours = "mesh";
const before = "mesh before";
const peer = "nats-server alone";

await using folder = await tempFolder();

/** Runs the publishers to their end. */
async function publish(port: number, by: readonly Publisher[]): Promise<PublishReport> {
  await using child = startChild(import.meta.resolve("./ingestion/publishers.ts"), {
    BENCH_MQTT_PORT: String(port),
    BENCH_PUBLISHERS: await writePublishers(folder.path, by),
    BENCH_MESSAGES: String(messages),
    BENCH_WINDOW: String(inFlight / by.length),
  });
  return (await child.ready) as PublishReport;
}

async function storedBy(mesh: TestMesh): Promise<number> {
  const { services } = await mesh.parts();
  const metrics = await (await fetch(`${services.data?.ops}/metrics`)).text();
  return Number(/^devmesh_data_records_stored_total\{[^}]*qos="1"[^}]*\} (\d+)/m.exec(metrics)?.[1] ?? 0);
}

async function startPublishedMesh(start: typeof startMesh) {
  const env = { RATE_MASTER: "1000000", DEVICE_RATE_MESSAGES: "1000000", DEVICE_RATE_BYTES: "1000000000" };
  const mesh = await start({ env });
  const devices = (await createDevices(mesh, Math.max(...fleets))).map((device) => ({
    ...device,
    clientId: device.id,
  }));
  return {
    async measure(count: number) {
      const processes = await meshProcesses(mesh);
      const [ofData, ofAll] = [[processes.data ?? Number.NaN], Object.values(processes)];
      const [data, all, stored] = [await cpuSeconds(ofData), await cpuSeconds(ofAll), await storedBy(mesh)];
      const sent = await publish(mesh.ports.mqtt, devices.slice(0, count));
      while ((await storedBy(mesh)) < stored + sent.messages) await sleep(pollMs);
      return {
        "records/s": (sent.messages / (Date.now() - sent.began)) * 1_000,
        "acknowledged/s": (sent.messages / (sent.ended - sent.began)) * 1_000,
        "records per CPU second of data": sent.messages / ((await cpuSeconds(ofData)) - data),
        "records per CPU second of the mesh": sent.messages / ((await cpuSeconds(ofAll)) - all),
      };
    },
    [Symbol.asyncDispose]: () => mesh.stop(),
  };
}

await using bare = await startNatsServer({
  config: ({ port, mqttPort, storeDir }) => `
    server_name: bare
    listen: "127.0.0.1:${port}"
    jetstream { store_dir: ${JSON.stringify(storeDir)}, sync_interval: "1s", limits { default_max_consumers: -1 } }
    mqtt { listen: "127.0.0.1:${mqttPort}" }
    accounts { DEVICES { jetstream: enabled, users: [ { user: bare, password: bare } ] } }`,
});

async function measureBare(count: number) {
  const by = Array.from({ length: count }, (_, nth) => ({
    id: "bare",
    token: "bare",
    clientId: `bench-${nth}`,
  }));
  const sent = await publish(bare.mqttPort, by);
  const rate = (sent.messages / (sent.ended - sent.began)) * 1_000;
  return { "records/s": rate, "acknowledged/s": rate };
}

await using mesh = await startPublishedMesh(startMesh);
const startBefore = await startMeshBefore();
await using earlier = startBefore && (await startPublishedMesh(startBefore));
for (const count of fleets) {
  console.log(`${messages} records, devices: ${count}`);
  const contenders: Record<string, () => Promise<Record<string, number>>> = {
    [ours]: () => mesh.measure(count),
    ...(earlier && { [before]: () => earlier.measure(count) }),
    [peer]: () => measureBare(count),
  };
  const measured = await inTurns(rounds, contenders);
  report(measured, { ours, peer, goals: { "records/s": { ratio: 0.7 } } });
  if (earlier) report(measured, { ours, peer: before });
}
