/**
 * What a device waits for acknowledgements at QoS 1 by `BROKER_SYNC`, against a sync every second, and what
 * nats-server uses while nothing happens. `node bench/broker-sync.ts [intervals, comma-separated] [load]`, part of a
 * load's name.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { connectNats } from "@devmesh/testkit/nats-connection";
import { startNatsServer } from "@devmesh/testkit/nats-server";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { publish, type RecordPublisher } from "./ingestion/publisher.ts";
import { inTurns, report, reportFigures } from "./measure.ts";
import { cpuSeconds } from "./process-usage.ts";

interface PublishingLoad {
  readonly name: string;
  readonly devices: number;
  /** Messages of all devices, and those of them that wait for an acknowledgement at a time. */
  readonly messages: number;
  readonly inFlight: number;
}

const intervals = (process.argv[2] ?? "100ms,always").split(",");
const allLoads: readonly PublishingLoad[] = [
  { name: "1 device, 1 in flight", devices: 1, messages: 5_000, inFlight: 1 },
  { name: "100 devices, 1 in flight each", devices: 100, messages: 20_000, inFlight: 100 },
  { name: "1,000 devices, 1 in flight each", devices: 1_000, messages: 20_000, inFlight: 1_000 },
  { name: "100 devices, 10 in flight each", devices: 100, messages: 30_000, inFlight: 1_000 },
];
const loads = allLoads.filter(({ name }) => name.includes(process.argv[3] ?? ""));
const rounds = 3;
const idleMs = 2_000;
const peer = "1s";

await using folder = await tempFolder();

const startBroker = (sync: string) =>
  startNatsServer({
    config: ({ port, mqttPort, storeDir }) => `
      server_name: bench
      listen: "127.0.0.1:${port}"
      jetstream { store_dir: ${JSON.stringify(storeDir)}, sync_interval: "${sync}" }
      mqtt { listen: "127.0.0.1:${mqttPort}" }
      accounts { DEVICES { jetstream: enabled, users: [ { user: bench, password: bench } ] } }`,
  });

async function measure(sync: string, { name, devices, messages, inFlight }: PublishingLoad) {
  await using server = await startBroker(sync);
  const publishers: RecordPublisher[] = Array.from({ length: devices }, (_, nth) => ({
    id: "bench",
    token: "bench",
    clientId: `bench-${nth}`,
  }));
  const round = { port: server.mqttPort, folder: folder.path, kind: "records", publishers } as const;
  // The first connection creates the streams. The broker stores a message only for a consumer.
  await publish({ ...round, publishers: publishers.slice(0, 1), messages: 1, inFlight: 1 });
  await using admin = await connectNats({ port: server.port, user: "bench", password: "bench" });
  await admin.requestJson("$JS.API.CONSUMER.DURABLE.CREATE.$MQTT_msgs.bench", {
    stream_name: "$MQTT_msgs",
    config: { durable_name: "bench", ack_policy: "explicit", deliver_policy: "all" },
  });
  const cpuBefore = await cpuSeconds([server.pid]);
  const { began, ended, p99 } = await publish({ ...round, messages, inFlight });
  const cpu = (await cpuSeconds([server.pid])) - cpuBefore;
  return {
    [`${name}, PUBACK/s`]: (messages / (ended - began)) * 1_000,
    [`${name}, p99, ms`]: p99,
    [`${name}, per CPU second of nats-server`]: messages / cpu,
  };
}

/** The processor time of a nats-server with MQTT's streams, which nobody uses. */
async function measureIdle(sync: string) {
  await using server = await startBroker(sync);
  const by = [{ id: "bench", token: "bench", clientId: "bench" }];
  await publish({
    port: server.mqttPort,
    folder: folder.path,
    kind: "records",
    publishers: by,
    messages: 1,
    inFlight: 1,
  });
  // It writes the state of each stream when it stops, and syncs that too from then on.
  await server.restart();
  await sleep(idleMs / 2);
  const before = await cpuSeconds([server.pid]);
  await sleep(idleMs);
  return { "idle, % of a processor": (((await cpuSeconds([server.pid])) - before) / idleMs) * 100_000 };
}

/** Rounds of all intervals in turns. */
const inTurnsOf = (run: (sync: string) => Promise<Record<string, number>>) =>
  inTurns<string, string>(
    rounds,
    Object.fromEntries([...intervals, peer].map((sync) => [sync, () => run(sync)])),
  );

for (const [sync, figures] of Object.entries(await inTurnsOf(measureIdle)))
  for (const [name, values] of Object.entries(figures))
    reportFigures([{ name, ours: { name: sync, values }, digits: 1 }]);
for (const load of loads) {
  const measured = await inTurnsOf((sync) => measure(sync, load));
  for (const ours of intervals) report(measured, { ours, peer, digits: 1 });
}
