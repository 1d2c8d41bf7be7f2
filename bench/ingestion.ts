/**
 * Records stored and shadows updated a second by what devices publish at QoS 1, against what nats-server alone
 * acknowledges without a consumer, which stores nothing. `node bench/ingestion.ts [records a round] [load]`, part of a
 * load's name.
 */
import { startMesh } from "@devmesh/testkit/mesh";
import { startNatsServer } from "@devmesh/testkit/nats-server";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { handledBy, handlers, untilHandled } from "./ingestion/handled.ts";
import { type PublishedCount, publish, type RecordPublisher } from "./ingestion/publisher.ts";
import { inTurns, report } from "./measure.ts";
import { startMeshBefore } from "./mesh-before.ts";
import { createDevices } from "./mesh-tenant.ts";
import { cpuSeconds, meshProcesses } from "./process-usage.ts";

/** What devices publish in a round. */
interface IngestionLoad {
  readonly name: string;
  readonly kind: PublishedCount;
  readonly devices: number;
  readonly messages: number;
}

const records = Number(process.argv[2] ?? 60_000);
const allLoads: readonly IngestionLoad[] = [
  { name: "records of one device", kind: "records", devices: 1, messages: records },
  { name: "records of 1,000 devices", kind: "records", devices: 1_000, messages: records },
  { name: "shadow updates of 1,000 devices", kind: "shadow", devices: 1_000, messages: records / 10 },
];
const loads = allLoads.filter(({ name }) => name.includes(process.argv[3] ?? ""));
const rounds = 3;
/** Unacknowledged messages of all devices. */
const inFlight = 1_000;
const ours = "mesh";
const before = "mesh before";
const peer = "nats-server alone";

await using folder = await tempFolder();

const publishLoad = (
  port: number,
  { kind, messages }: IngestionLoad,
  publishers: readonly RecordPublisher[],
) => publish({ port, folder: folder.path, publishers, kind, messages, inFlight });

const figures = ({ name }: IngestionLoad) => ({
  handled: `${name}, handled /s`,
  acknowledged: `${name}, acknowledged /s`,
  perCpu: `${name} per CPU second of the mesh`,
  perServiceCpu: `${name} per CPU second of the service`,
});

async function startPublishedMesh(start: typeof startMesh) {
  const env = { RATE_MASTER: "1000000", DEVICE_RATE_MESSAGES: "1000000", DEVICE_RATE_BYTES: "1000000000" };
  const mesh = await start({ env });
  const most = Math.max(...loads.map(({ devices }) => devices));
  const devices = (await createDevices(mesh, most)).map((device) => ({ ...device, clientId: device.id }));
  return {
    async measure(load: IngestionLoad) {
      const { kind } = load;
      const processes = await meshProcesses(mesh);
      const [ofService, ofAll] = [
        [processes[handlers[kind].service] ?? Number.NaN],
        Object.values(processes),
      ];
      const [service, all] = [await cpuSeconds(ofService), await cpuSeconds(ofAll)];
      const before = await handledBy(mesh, kind);
      const { began, ended, messages } = await publishLoad(
        mesh.ports.mqtt,
        load,
        devices.slice(0, load.devices),
      );
      await untilHandled(mesh, kind, before + messages);
      const { handled, acknowledged, perCpu, perServiceCpu } = figures(load);
      return {
        [handled]: (messages / (Date.now() - began)) * 1_000,
        [acknowledged]: (messages / (ended - began)) * 1_000,
        [perServiceCpu]: messages / ((await cpuSeconds(ofService)) - service),
        [perCpu]: messages / ((await cpuSeconds(ofAll)) - all),
      };
    },
    [Symbol.asyncDispose]: () => mesh.stop(),
  };
}

await using bare = await startNatsServer({
  config: ({ port, mqttPort, storeDir }) => `
    server_name: bare
    listen: "127.0.0.1:${port}"
    jetstream { store_dir: ${JSON.stringify(storeDir)}, sync_interval: "100ms", limits { default_max_consumers: -1 } }
    mqtt { listen: "127.0.0.1:${mqttPort}" }
    accounts { DEVICES { jetstream: enabled, users: [ { user: bare, password: bare } ] } }`,
});

async function measureBare(load: IngestionLoad) {
  const by = Array.from({ length: load.devices }, (_, nth) => ({
    id: "bare",
    token: "bare",
    clientId: `bench-${nth}`,
  }));
  const { began, ended, messages } = await publishLoad(bare.mqttPort, load, by);
  const rate = (messages / (ended - began)) * 1_000;
  const { handled, acknowledged } = figures(load);
  return { [handled]: rate, [acknowledged]: rate };
}

await using mesh = await startPublishedMesh(startMesh);
const startBefore = await startMeshBefore();
await using earlier = startBefore && (await startPublishedMesh(startBefore));
for (const load of loads) {
  const contenders: Record<string, () => Promise<Record<string, number>>> = {
    [ours]: () => mesh.measure(load),
    ...(earlier && { [before]: () => earlier.measure(load) }),
    [peer]: () => measureBare(load),
  };
  const measured = await inTurns(rounds, contenders);
  const goals = load.kind === "records" ? { [figures(load).handled]: { ratio: 0.7 } } : {};
  report(measured, { ours, peer, goals });
  if (earlier) report(measured, { ours, peer: before });
}
