import type { mesh } from "@devmesh/contracts/mesh";
import { rpcEvents } from "@devmesh/contracts/rpc-bridge";
import { subscribe } from "@devmesh/service-kit/events";
import { mapStoreErrors } from "@devmesh/service-kit/map-store-errors";
import type { StartedService, StartOptions } from "@devmesh/service-kit/run-service";
import { isStoreUnavailable } from "@devmesh/store/store-unavailable";
import { Background } from "./background.ts";
import { createDevices } from "./devices.ts";
import type { DevicesEnv } from "./env.ts";
import { createBrokerConnections } from "./presence/broker-connections.ts";
import { startThrottling } from "./presence/device-throttle.ts";
import { registerPresenceMetrics } from "./presence/presence-metrics.ts";
import { watchPresence } from "./presence/presence-watch.ts";
import { createDeviceNotices } from "./registry/device-events.ts";
import { openDeviceStore } from "./store/open-device-store.ts";

type Declaration = typeof mesh.devices;

/** How long the store may take to show that it is there, in milliseconds. */
const readinessTimeoutMs = 1_000;

/** Opens the store, learns from the broker which devices are connected, and takes up what a crash left half-done. */
export async function startDevices(
  parts: StartOptions<Declaration, DevicesEnv>,
): Promise<StartedService<Declaration["serves"]>> {
  const { env, bus, publisher, clients, log, clock, metrics, signal } = parts;
  const store = await openDeviceStore(env.STORE_URL, signal);
  const background = new Background({ clock, signal, log });
  const connections = createBrokerConnections(bus);
  const presence = await watchPresence({ store, connections, publisher, background, clock });
  registerPresenceMetrics(metrics.registry, presence);
  const notices = createDeviceNotices(publisher, clock);
  const throttle = startThrottling({
    connections,
    notices,
    limits: { messagesPerSecond: env.DEVICE_RATE_MESSAGES, bytesPerSecond: env.DEVICE_RATE_BYTES },
    registry: metrics.registry,
    background,
    clock,
    log,
  });
  const hoarders = subscribe(
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
    notices,
    background,
    clock,
  });
  return {
    implementation: mapStoreErrors(implementation, isStoreUnavailable),
    ready: () => store.ping(AbortSignal.timeout(readinessTimeoutMs)),
    async stop() {
      await hoarders.stop();
      await presence.stop().catch((error: unknown) => {
        log.warn({ err: error }, "the last changes of presence were not stored");
      });
      await background.settled();
    },
    close: () => store.close(),
  };
}
