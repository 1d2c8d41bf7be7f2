import { mesh as declaration, type ServiceName } from "@devmesh/contracts/mesh";
import { findNatsServer } from "../nats-server/find-nats-server.ts";
import { brokerBackOff, serviceBackOff } from "../process/back-off.ts";
import type { ChildRegistry } from "../process/child-registry.ts";
import { endByCommandLine } from "../process/command-line.ts";
import { type RunningProcess, StartFailure } from "../process/running-process.ts";
import { type Supervision, type SupervisionReport, supervise } from "../process/supervision.ts";
import { type BrokerAddresses, brokerAddresses, reachable } from "./broker-addresses.ts";
import { installationOf, writeBrokerConfig } from "./broker-configuration.ts";
import { syncDescriptions } from "./broker-files.ts";
import { awaitAnyListening, endLeftoverBroker, startBroker } from "./broker-process.ts";
import { brokerStorage } from "./broker-storage.ts";
import { type DataFolder, dataFolder, lockDataFolder, prepareDataFolder } from "./data-folder.ts";
import type { Installation } from "./installation.ts";
import { type MeshFile, meshFileWriter, readMeshFile } from "./mesh-file.ts";
import { checkPorts, type WantedPort } from "./ports.ts";
import { withoutRepeats } from "./repeats.ts";
import { serviceEnvironment } from "./service-environment.ts";
import { brokerLog, type PartLog, serviceLog } from "./service-log.ts";
import { type ServicePlace, type ServiceProcess, serviceEntry, startService } from "./service-process.ts";
import { httpUrl, type MeshSettings } from "./settings.ts";

/**
 * Time, in milliseconds, that a service has to close its store after the running calls are done, and nats-server to
 * close its files.
 */
const CLOSING_MS = 7_000;
const BROKER_GRACE_MS = 10_000;

/** What is needed to start a mesh. */
export interface MeshStart {
  readonly settings: MeshSettings;
  readonly env: NodeJS.ProcessEnv;
  /** Root of the repository, where `services/` is. */
  readonly repository: string;
  /** Services that somebody else runs beside this mesh. */
  readonly without: ReadonlySet<ServiceName>;
  readonly children: ChildRegistry;
  /** For the user, on standard output and on standard error. */
  say(sentence: string): void;
  complain(line: string): void;
}

/** A mesh that is up; its parts are restarted when they die. */
export interface Mesh {
  readonly url: string;
  readonly mqttUrl: string;
  readonly folder: DataFolder;
  /** Stops the gateway, then the other services, then nats-server. */
  stop(): Promise<void>;
}

/** The services of the mesh, in the order of their declaration. */
export const serviceNames = Object.keys(declaration) as ServiceName[];

/**
 * Brings a mesh up and resolves when all of it is ready. Rejects with a {@link StartFailure}, or when `signal` fires;
 * nothing is left running then.
 */
export async function startMesh(start: MeshStart, signal: AbortSignal): Promise<Mesh> {
  const { settings, say } = start;
  const quietly: MeshStart = { ...start, complain: withoutRepeats(start.complain, () => performance.now()) };
  const folder = dataFolder(settings.dataDir);
  await using undo = new AsyncDisposableStack();

  await prepareDataFolder(folder);
  const lock = lockDataFolder(folder);
  undo.defer(() => lock.release());
  await endLeftovers(folder, say);
  await checkPorts(settings.host, wantedPorts(settings, start.without));
  const installation = await installationOf(folder.installation);

  const addresses = brokerAddresses(settings);
  const parts: MeshParts = {
    logs: [],
    broker: null,
    services: new Map(),
    stopping: new AbortController(),
  };
  undo.defer(() => {
    for (const log of parts.logs) log.close();
  });
  const meshFile = meshFileWriter(folder.meshFile);
  undo.defer(() => meshFile.remove());
  const report: SupervisionReport = {
    say,
    changed: () => {
      meshFile
        .write(describe(settings, addresses, parts))
        .catch((error) =>
          start.complain(`mesh.json could not be written: ${error instanceof Error ? error.message : error}`),
        );
    },
  };

  const broker = await bringUpBroker(quietly, folder, installation, addresses, parts, report, signal);
  parts.broker = broker;
  undo.defer(() => broker?.stop(BROKER_GRACE_MS));

  undo.defer(async () => {
    parts.stopping.abort();
    const gateway = parts.services.get("gateway");
    const graceMs = settings.drainMs + CLOSING_MS;
    await gateway?.stop(graceMs);
    await Promise.all([...parts.services.values()].map((service) => service.stop(graceMs)));
  });
  await bringUpServices(quietly, folder, installation, addresses, parts, report, signal);
  if (broker) await syncDescriptions(folder.jetstream);
  await meshFile.write(describe(settings, addresses, parts));

  const running = undo.move();
  return {
    url: httpUrl(settings.host, settings.port),
    mqttUrl: addresses.mqttUrl,
    folder,
    stop: () => running.disposeAsync(),
  };
}

interface MeshParts {
  readonly logs: PartLog[];
  broker: Supervision<RunningProcess> | null;
  readonly services: Map<ServiceName, Supervision<ServiceProcess>>;
  readonly stopping: AbortController;
}

function wantedPorts(settings: MeshSettings, without: ReadonlySet<ServiceName>): WantedPort[] {
  const ports: WantedPort[] = without.has("gateway") ? [] : [{ variable: "PORT", port: settings.port }];
  if (settings.natsUrls.length > 0) return ports;
  ports.push(
    { variable: "MQTT_PORT", port: settings.mqttPort },
    { variable: "NATS_PORT", port: settings.natsPort },
  );
  if (settings.mqttWebsocketPort) ports.push({ variable: "MQTT_WS_PORT", port: settings.mqttWebsocketPort });
  return ports;
}

/**
 * A launcher that was killed leaves processes that are about to end, or, without its watcher, a nats-server that is
 * not.
 */
async function endLeftovers(folder: DataFolder, say: (sentence: string) => void): Promise<void> {
  const before = await readMeshFile(folder.meshFile);
  const services = Object.entries(before?.services ?? {}) as [ServiceName, { pid: number }][];
  const ended = await Promise.all([
    ...services.map(([service, { pid }]) =>
      endByCommandLine(pid, [serviceEntry(service), `--mesh=${folder.path}`], CLOSING_MS),
    ),
    endLeftoverBroker(folder),
  ]);
  if (ended.some(Boolean)) say("Ended what an earlier start of this mesh had left running.");
}

async function bringUpBroker(
  { settings, env, children, say, complain }: MeshStart,
  folder: DataFolder,
  installation: Installation,
  addresses: BrokerAddresses,
  parts: MeshParts,
  report: SupervisionReport,
  signal: AbortSignal,
): Promise<Supervision<RunningProcess> | null> {
  await writeBrokerConfig(settings, folder, installation);
  const found = await findNatsServer({ env, say, signal });
  if (found.kind === "running") {
    say(`Using the nats-server at ${addresses.natsUrl}; it must run with ${folder.brokerConfig}.`);
    await awaitAnyListening(addresses.servers, 10_000, signal).catch((cause) => {
      throw new StartFailure(
        `Nothing answers at ${addresses.natsUrl}, which NATS_URL names; start nats-server there with --config ${folder.brokerConfig}.`,
        { cause },
      );
    });
    return null;
  }
  const onWriteError = brokerStorage({
    folder: folder.jetstream,
    broker: () => parts.broker,
    graceMs: BROKER_GRACE_MS,
    say,
    signal: parts.stopping.signal,
  });
  const log = brokerLog(folder.logOf("nats-server"), complain, onWriteError);
  parts.logs.push(log);
  const host = reachable(settings.host);
  const listeners = [
    { host, port: settings.natsPort },
    { host, port: settings.mqttPort },
    ...(settings.mqttWebsocketPort ? [{ host, port: settings.mqttWebsocketPort }] : []),
  ];
  const part = {
    name: "nats-server",
    start: (stop: AbortSignal) => startBroker(found.path, folder, listeners, log, children, stop),
    backOff: brokerBackOff,
  };
  return await named("nats-server", supervise(part, report, signal));
}

async function bringUpServices(
  { settings, env, repository, without, children, say, complain }: MeshStart,
  folder: DataFolder,
  installation: Installation,
  { natsUrl, mqttUrl, mqttPublicUrl }: BrokerAddresses,
  parts: MeshParts,
  report: SupervisionReport,
  signal: AbortSignal,
): Promise<void> {
  const oneFailed = new AbortController();
  const either = AbortSignal.any([signal, oneFailed.signal]);
  const place: ServicePlace = { repository, dataDir: folder.path, children, say };
  const mqttTlsCert = settings.mqttTls?.certFile;
  const surroundings = {
    settings,
    folder,
    installation,
    natsUrl,
    mqttUrl,
    mqttPublicUrl,
    mqttTlsCert,
    inherited: env,
  };

  const bringUp = async (service: ServiceName) => {
    // Once one has failed, what the others say is how they are ended, and would bury the reason.
    const log = serviceLog(
      service,
      folder.logOf(service),
      (line) => oneFailed.signal.aborted || complain(line),
    );
    parts.logs.push(log);
    const serviceEnv = serviceEnvironment(service, surroundings);
    const part = {
      name: service,
      start: (stop: AbortSignal) => startService(service, serviceEnv, log, place, stop),
      backOff: serviceBackOff,
    };
    parts.services.set(service, await named(service, supervise(part, report, either)));
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

async function named<T>(part: string, starting: Promise<T>): Promise<T> {
  try {
    return await starting;
  } catch (error) {
    if (error instanceof StartFailure) throw new StartFailure(`${part} ${error.message}.`, { cause: error });
    throw error;
  }
}

function describe(settings: MeshSettings, addresses: BrokerAddresses, parts: MeshParts): MeshFile {
  const services: MeshFile["services"] = {};
  for (const [service, supervision] of parts.services) {
    const running = supervision.current();
    if (running) services[service] = { pid: running.pid, ops: running.ops };
  }
  const broker = parts.broker?.current();
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
    nats_server: broker ? { pid: broker.pid } : null,
    services,
  };
}
