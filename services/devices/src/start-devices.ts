import { brokerLogEvents } from "@devmesh/contracts/broker-log";
import { dataEvents } from "@devmesh/contracts/data";
import { deviceEvents } from "@devmesh/contracts/devices";
import { keyEvents } from "@devmesh/contracts/keys";
import type { mesh } from "@devmesh/contracts/mesh";
import { DiagnosisReports } from "@devmesh/contracts/model/diagnostics";
import { rpcEvents } from "@devmesh/contracts/rpc-bridge";
import type { Bus } from "@devmesh/service-kit/bus";
import { type ActiveSubscription, subscribe } from "@devmesh/service-kit/events/subscription";
import type { ServiceParts, StartOptions } from "@devmesh/service-kit/process/run-service";
import { mapStoreErrors } from "@devmesh/service-kit/rpc/map-store-errors";
import { traceStore } from "@devmesh/service-kit/tracing/trace-store";
import { isStoreUnavailable } from "@devmesh/store/store-unavailable";
import { openStore, parseStoreUrl } from "@devmesh/store/store-url";
import type { z } from "zod";
import { Background } from "./background.ts";
import { createBrokerConnections } from "./connections/broker-connections.nats.ts";
import type { BrokerConnections } from "./connections/broker-connections.ts";
import { createDeviceEventPublisher } from "./device-events.ts";
import { createDevices } from "./devices.ts";
import { createDiagnostics, type Diagnostics } from "./diagnostics/diagnostics.ts";
import type { DevicesEnv } from "./env.ts";
import { registerPresenceMetrics, watchPresence } from "./presence/presence-watch.ts";
import { createSqliteDeviceStore } from "./store/device-store.sqlite.ts";
import type { DeviceStore } from "./store/device-store.ts";
import { createDeviceThrottle } from "./throttle/device-throttle.ts";

/** How long a readiness check of the store may take, in milliseconds. */
const readinessTimeoutMs = 1_000;

type Declaration = typeof mesh.devices;

/** Options of `startDevices`. A test moves connections by hand, and reads the store beside the service. */
export interface StartDevicesOptions
  extends Pick<
    StartOptions<Declaration, Pick<DevicesEnv, "STORE_URL" | "DEVICE_RATE_MESSAGES" | "DEVICE_RATE_BYTES">>,
    "env" | "bus" | "publisher" | "clients" | "log" | "clock" | "metrics" | "signal" | "onLauncherMessage"
  > {
  /** Those of the broker unless given. */
  readonly connections?: BrokerConnections;
  /** Opened as `STORE_URL` says unless given. */
  readonly store?: DeviceStore;
}

/** The started service; ready when the store can be read. */
export type StartedDevices = Required<Omit<ServiceParts<Declaration["serves"]>, "elsewhere">>;

/** Opens the store, reads from the broker which devices are connected, and resumes what a crash left half-done. */
export async function startDevices(options: StartDevicesOptions): Promise<StartedDevices> {
  const { env, bus, publisher, clients, log, clock, metrics, signal, onLauncherMessage } = options;
  const { connections = createBrokerConnections(bus) } = options;
  const opened = options.store ?? (await openDeviceStore(env.STORE_URL, signal));
  const store = traceStore(bus.tracer, opened, {
    system: parseStoreUrl(env.STORE_URL).kind,
    collection: "devices",
  });
  const background = new Background({ clock, signal, log });
  const events = createDeviceEventPublisher(publisher, clock);
  const diagnostics = createDiagnostics({ events, background, clock });
  const throttle = createDeviceThrottle({
    connections,
    events,
    limits: { messagesPerSecond: env.DEVICE_RATE_MESSAGES, bytesPerSecond: env.DEVICE_RATE_BYTES },
    registry: metrics.registry,
    background,
    clock,
    log,
  });
  const presence = await watchPresence({
    store,
    connections,
    publisher,
    diagnostics,
    throttle,
    // Each stream is kept by all of them.
    servers: bus.streamReplicas,
    background,
    clock,
  });
  registerPresenceMetrics(metrics.registry, presence);
  const hoarding = subscribe(
    bus,
    { events: rpcEvents, names: ["hoarding"] },
    { hoarding: ({ id }) => throttle.throttle(id, "storage") },
    { mode: "one" },
  );
  const diagnosing = followDiagnostics(bus, diagnostics);
  onLauncherMessage((message) => {
    // What only the broker's log says.
    const reported = DiagnosisReports.safeParse(message);
    if (reported.success) diagnostics.record(reported.data.reports);
  });
  const implementation = createDevices({
    store,
    keys: clients.keys,
    data: clients.data,
    rpcBridge: clients["rpc-bridge"],
    jobs: clients.jobs,
    webhooks: clients.webhooks,
    connections,
    presence,
    events,
    diagnostics,
    background,
    clock,
  });
  return {
    implementation: mapStoreErrors(implementation, isStoreUnavailable),
    ready: () => store.ping(AbortSignal.timeout(readinessTimeoutMs)),
    figures: { devices_online: () => presence.devicesOnline },
    async stop() {
      await Promise.all([hoarding.stop(), diagnosing.stop()]);
      await presence.stop().catch((error: unknown) => {
        log.warn({ err: error }, "the last changes of presence were not stored");
      });
      await background.settled();
    },
    close: () => store.close(),
  };
}

/** Records what services report of devices, in every replica, so that each can answer. */
function followDiagnostics(bus: Bus, diagnostics: Diagnostics): ActiveSubscription {
  const record = ({ reports }: z.output<typeof DiagnosisReports>) => diagnostics.record(reports);
  const each = { mode: "each" } as const;
  const sources = [keyEvents, rpcEvents, dataEvents, brokerLogEvents].map((events) =>
    subscribe(bus, { events, names: ["diagnostics"] }, { diagnostics: record }, each),
  );
  const throttled = subscribe(
    bus,
    { events: deviceEvents, names: ["throttled"] },
    { throttled: (event) => diagnostics.throttled(event) },
    each,
  );
  return {
    async stop() {
      await Promise.all([...sources, throttled].map((source) => source.stop()));
    },
  };
}

/** The store of devices, as {@link openStore} opens it. */
export function openDeviceStore(storeUrl: string, signal: AbortSignal): Promise<DeviceStore> {
  const mongodb = async () => (await import("./store/device-store.mongodb.ts")).openMongoDeviceStore;
  return openStore(parseStoreUrl(storeUrl), { sqlite: createSqliteDeviceStore, mongodb }, signal);
}
