import type { mesh } from "@devmesh/contracts/mesh";
import { rpcEvents } from "@devmesh/contracts/rpc-bridge";
import { subscribe } from "@devmesh/service-kit/events";
import { mapStoreErrors } from "@devmesh/service-kit/map-store-errors";
import type { StartService } from "@devmesh/service-kit/run-service";
import { isStoreUnavailable } from "@devmesh/store/store-unavailable";
import { parseStoreUrl } from "@devmesh/store/store-url";
import { Background } from "./background.ts";
import { createDevices } from "./devices.ts";
import type { DevicesEnv } from "./env.ts";
import { createBrokerConnections } from "./presence/broker-connections.ts";
import { startThrottling } from "./presence/device-throttle.ts";
import { registerPresenceMetrics, watchPresence } from "./presence/presence-watch.ts";
import { createDeviceEventPublisher } from "./registry/device-events.ts";
import { createSqliteDeviceStore } from "./store/device-store.sqlite.ts";
import type { DeviceStore } from "./store/device-store.ts";

/** How long a readiness check of the store may take, in milliseconds. */
const readinessTimeoutMs = 1_000;

/** Opens the store, reads from the broker which devices are connected, and resumes what a crash left half-done. */
export const startDevices: StartService<typeof mesh.devices, DevicesEnv> = async (parts) => {
  const { env, bus, publisher, clients, log, clock, metrics, signal } = parts;
  const store = await openDeviceStore(env.STORE_URL, signal);
  const background = new Background({ clock, signal, log });
  const connections = createBrokerConnections(bus);
  const presence = await watchPresence({ store, connections, publisher, background, clock });
  registerPresenceMetrics(metrics.registry, presence);
  const events = createDeviceEventPublisher(publisher, clock);
  const throttle = startThrottling({
    connections,
    events,
    limits: { messagesPerSecond: env.DEVICE_RATE_MESSAGES, bytesPerSecond: env.DEVICE_RATE_BYTES },
    registry: metrics.registry,
    background,
    clock,
    log,
  });
  const hoarding = subscribe(
    bus,
    { events: rpcEvents, names: ["hoarding"] },
    { hoarding: ({ id }) => throttle(id, "storage") },
    { mode: "one" },
  );
  const implementation = createDevices({
    store,
    keys: clients.keys,
    data: clients.data,
    rpcBridge: clients["rpc-bridge"],
    connections,
    presence,
    events,
    background,
    clock,
  });
  return {
    implementation: mapStoreErrors(implementation, isStoreUnavailable),
    ready: () => store.ping(AbortSignal.timeout(readinessTimeoutMs)),
    async stop() {
      await hoarding.stop();
      await presence.stop().catch((error: unknown) => {
        log.warn({ err: error }, "the last changes of presence were not stored");
      });
      await background.settled();
    },
    close: () => store.close(),
  };
};

/** The store that `STORE_URL` names. Rejects with one clear sentence when it cannot be opened. */
export async function openDeviceStore(storeUrl: string, signal: AbortSignal): Promise<DeviceStore> {
  const url = parseStoreUrl(storeUrl);
  if (url.kind !== "mongodb") return createSqliteDeviceStore(url.path);
  // The driver is large, and most installations do not use it.
  const { openMongoDeviceStore } = await import("./store/device-store.mongodb.ts");
  return await openMongoDeviceStore(url, signal);
}
