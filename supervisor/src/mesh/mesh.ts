import { type ServiceName, serviceNames } from "@devmesh/contracts/mesh";
import { createRefusedTopics } from "@devmesh/device-broker/broker-log";
import { brokerBackOff, serviceBackOff } from "../process/back-off.ts";
import type { ChildRegistry } from "../process/child-registry.ts";
import type { Terminal } from "../process/command.ts";
import { endByCommandLine } from "../process/command-line.ts";
import { messageOf, StartFailure } from "../process/errors.ts";
import {
  type RunningProcess,
  type Supervision,
  type SupervisionReport,
  supervise,
} from "../process/supervision.ts";
import { type BrokerAddresses, brokerAddresses, reachable } from "./broker-addresses.ts";
import { installationOf, writeBrokerConfig } from "./broker-configuration.ts";
import { awaitAnyListening, endLeftoverBroker, startBroker } from "./broker-process.ts";
import { restartAfterWriteErrors, syncDescriptions } from "./broker-storage.ts";
import { type DataFolder, dataFolder, lockDataFolder, prepareDataFolder } from "./data-folder.ts";
import type { Installation } from "./installation.ts";
import { type MeshFile, meshFileWriter, readMeshFile } from "./mesh-file.ts";
import { checkPorts, type WantedPort } from "./ports.ts";
import { serviceEnvironment } from "./service-environment.ts";
import { brokerLog, foldRepeats, type PartLog, serviceLog } from "./service-log.ts";
import { type ServiceProcess, startService } from "./service-process.ts";
import { httpUrl, type MeshSettings } from "./settings.ts";

/** Time, in milliseconds, that a service has to close its store once the running calls are done. */
const CLOSING_MS = 7_000;
/** Time, in milliseconds, that nats-server has to close its files. */
const BROKER_GRACE_MS = 10_000;

/** Returns the path of a nats-server of a supported version. Throws a {@link StartFailure} when there is none. */
export type FindNatsServer = (search: {
  readonly env: NodeJS.ProcessEnv;
  /** For the user: each step that takes time or failed. */
  readonly log: (sentence: string) => void;
  readonly signal: AbortSignal;
}) => Promise<string>;

/** What is needed to start a mesh. */
export interface MeshOptions {
  readonly settings: MeshSettings;
  readonly env: NodeJS.ProcessEnv;
  /** Root of the repository, where `services/` is. */
  readonly repository: string;
  /** Folder of the services' bundles; null: they run from their sources. */
  readonly bundles: string | null;
  /** Called unless `NATS_URL` names servers. */
  readonly findNatsServer: FindNatsServer;
  /** Services that the user runs beside this mesh. */
  readonly without: ReadonlySet<ServiceName>;
  readonly children: ChildRegistry;
  readonly terminal: Terminal;
}

/** A mesh that is up; its parts are restarted when they die. */
export interface Mesh {
  readonly url: string;
  readonly mqttUrl: string;
  readonly folder: DataFolder;
  /** Stops the gateway, then the other services, then nats-server. */
  stop(): Promise<void>;
}

/** A mesh while it starts, and then while it runs. */
interface StartedMesh extends MeshOptions {
  readonly folder: DataFolder;
  readonly installation: Installation;
  readonly addresses: BrokerAddresses;
  readonly logs: PartLog[];
  broker: Supervision<RunningProcess> | null;
  readonly services: Map<ServiceName, Supervision<ServiceProcess>>;
  readonly stopping: AbortController;
  readonly report: SupervisionReport;
}

/**
 * Starts a mesh and resolves when all of it is ready. Rejects with a {@link StartFailure}, or when `signal` fires;
 * nothing is left running then.
 */
export async function startMesh(options: MeshOptions, signal: AbortSignal): Promise<Mesh> {
  const { settings, terminal, without } = options;
  const folder = dataFolder(settings.dataDir);
  await using undo = new AsyncDisposableStack();

  await prepareDataFolder(folder);
  const lock = lockDataFolder(folder);
  undo.defer(() => lock.release());
  if (await endLeftovers(folder)) terminal.log("Ended what an earlier start of this mesh had left running.");
  await checkPorts(wantedPorts(settings, without));

  const meshFile = meshFileWriter(folder.meshFile);
  const mesh: StartedMesh = {
    ...options,
    folder,
    installation: await installationOf(folder.installation),
    addresses: brokerAddresses(settings),
    logs: [],
    broker: null,
    services: new Map(),
    stopping: new AbortController(),
    report: {
      log: (sentence) => terminal.log(sentence),
      changed: () => {
        meshFile
          .write(describe(mesh))
          .catch((error) => terminal.warn(`mesh.json could not be written: ${messageOf(error)}`));
      },
    },
  };
  undo.defer(() => {
    for (const log of mesh.logs) log.close();
  });
  undo.defer(() => meshFile.remove());

  const warn = foldRepeats((line) => terminal.warn(line));
  mesh.broker = await bringUpBroker(mesh, warn, signal);
  undo.defer(() => mesh.broker?.stop(BROKER_GRACE_MS));

  undo.defer(async () => {
    mesh.stopping.abort();
    const graceMs = settings.drainMs + CLOSING_MS;
    await mesh.services.get("gateway")?.stop(graceMs);
    await Promise.all([...mesh.services.values()].map((service) => service.stop(graceMs)));
  });
  await bringUpServices(mesh, warn, signal);
  if (mesh.broker) await syncDescriptions(folder.jetstream);
  await meshFile.write(describe(mesh));

  const running = undo.move();
  return {
    url: httpUrl(settings.host, settings.port),
    mqttUrl: mesh.addresses.mqttUrl,
    folder,
    stop: () => running.disposeAsync(),
  };
}

function wantedPorts(settings: MeshSettings, without: ReadonlySet<ServiceName>): WantedPort[] {
  const http = { variable: "PORT", port: settings.port, hostVariable: "HOST", host: settings.host };
  const ports: WantedPort[] = without.has("gateway") ? [] : [http];
  return settings.natsUrls.length > 0 ? ports : [...ports, ...brokerPorts(settings)];
}

/** The ports of a broker of the mesh's own. */
function brokerPorts({
  mqttHost,
  natsHost,
  mqttPort,
  natsPort,
  mqttWebsocketPort,
}: MeshSettings): WantedPort[] {
  const mqtt = { hostVariable: "MQTT_HOST", host: mqttHost };
  return [
    { variable: "MQTT_PORT", port: mqttPort, ...mqtt },
    { variable: "NATS_PORT", port: natsPort, hostVariable: "NATS_HOST", host: natsHost },
    ...(mqttWebsocketPort === undefined
      ? []
      : [{ variable: "MQTT_WS_PORT", port: mqttWebsocketPort, ...mqtt }]),
  ];
}

/** Ends processes that a killed supervisor has left, and returns whether there were any. */
async function endLeftovers(folder: DataFolder): Promise<boolean> {
  const before = await readMeshFile(folder.meshFile);
  const services = Object.values(before?.services ?? {});
  const ended = await Promise.all([
    ...services.map(({ pid }) => endByCommandLine(pid, [`--mesh=${folder.path}`], CLOSING_MS)),
    endLeftoverBroker(folder),
  ]);
  return ended.some(Boolean);
}

async function bringUpBroker(
  mesh: StartedMesh,
  warn: (line: string) => void,
  signal: AbortSignal,
): Promise<Supervision<RunningProcess> | null> {
  const { settings, env, children, terminal, folder, installation, addresses } = mesh;
  const log = (sentence: string) => terminal.log(sentence);
  await writeBrokerConfig(settings, folder, installation);
  if (settings.natsUrls.length > 0) {
    log(`Using the nats-server at ${addresses.natsUrl}; it must run with ${folder.brokerConfig}.`);
    await awaitAnyListening(addresses.servers, 10_000, signal).catch((cause) => {
      throw new StartFailure(
        `Nothing answers at ${addresses.natsUrl}, which NATS_URL names; start nats-server there with --config ${folder.brokerConfig}.`,
        { cause },
      );
    });
    return null;
  }
  const binary = await mesh.findNatsServer({ env, log, signal });
  const onWriteError = restartAfterWriteErrors({
    folder: folder.jetstream,
    broker: () => mesh.broker,
    graceMs: BROKER_GRACE_MS,
    log,
    signal: mesh.stopping.signal,
  });
  const onLine = createRefusedTopics((message) => mesh.services.get("devices")?.current()?.send(message));
  const partLog = brokerLog(folder.logOf("nats-server"), warn, onWriteError, onLine);
  mesh.logs.push(partLog);
  const listeners = brokerPorts(settings).map(({ host, port }) => ({ host: reachable(host), port }));
  const part = {
    name: "nats-server",
    start: (stop: AbortSignal) => startBroker(binary, env, folder, listeners, partLog, children, stop),
    backOff: brokerBackOff,
  };
  return await withName(part.name, supervise(part, mesh.report, signal));
}

async function bringUpServices(
  mesh: StartedMesh,
  warn: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const { settings, env, repository, bundles, without, children, folder, installation, addresses } = mesh;
  const oneFailed = new AbortController();
  const either = AbortSignal.any([signal, oneFailed.signal]);
  const bringUp = async (service: ServiceName) => {
    // Once one has failed, the others are ended, and what they log then would bury the reason.
    const partLog = serviceLog(service, folder.logOf(service), (line) => {
      if (!oneFailed.signal.aborted) warn(line);
    });
    mesh.logs.push(partLog);
    const serviceEnv = serviceEnvironment(service, {
      settings,
      folder,
      installation,
      natsUrl: addresses.natsUrl,
      mqttUrl: addresses.mqttUrl,
      mqttPublicUrl: addresses.mqttPublicUrl,
      mqttTlsCert: settings.mqttTls?.certFile,
      inherited: env,
    });
    const options = { repository, bundles, dataDir: folder.path, children, log: mesh.report.log };
    const part = {
      name: service,
      start: (stop: AbortSignal) => startService(service, serviceEnv, partLog, options, stop),
      backOff: serviceBackOff,
    };
    mesh.services.set(service, await withName(service, supervise(part, mesh.report, either)));
  };
  let failure: unknown = null;
  await Promise.all(
    serviceNames
      .filter((service) => !without.has(service))
      .map((service) =>
        bringUp(service).catch((error) => {
          failure ??= error;
          oneFailed.abort();
        }),
      ),
  );
  if (failure) throw failure;
}

async function withName<T>(part: string, starting: Promise<T>): Promise<T> {
  try {
    return await starting;
  } catch (error) {
    if (error instanceof StartFailure) throw new StartFailure(`${part} ${error.message}.`, { cause: error });
    throw error;
  }
}

function describe({ settings, addresses, broker, services }: StartedMesh): MeshFile {
  const running = [...services].flatMap(([service, supervision]) => {
    const current = supervision.current();
    return current ? [[service, { pid: current.pid, ops: current.ops }] as const] : [];
  });
  const brokerProcess = broker?.current();
  return {
    pid: process.pid,
    url: httpUrl(settings.host, settings.port),
    mqtt_url: addresses.mqttUrl,
    mqtt_public_url: addresses.mqttPublicUrl,
    mqtt_tls_cert: settings.mqttTls?.certFile ?? null,
    nats_url: addresses.natsUrl,
    settings: {
      host: settings.host,
      port: settings.port,
      mqtt_port: settings.mqttPort,
      public_url: settings.publicUrl,
    },
    nats_server: brokerProcess ? { pid: brokerProcess.pid } : null,
    services: Object.fromEntries(running),
  };
}
