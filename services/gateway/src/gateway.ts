import { mesh } from "@devmesh/contracts/mesh";
import { subscribe } from "@devmesh/service-kit/events";
import type { StartOptions } from "@devmesh/service-kit/run-service";
import type { EndpointStats } from "@devmesh/service-kit/serve";
import { KeyCache } from "./auth/key-cache.ts";
import { type AclPermissions, PermissionCache } from "./auth/permission-cache.ts";
import type { GatewayEnv } from "./env.ts";
import { createApp } from "./http/app.ts";
import { Places } from "./http/concurrency-limit.ts";
import { createHttpMetrics } from "./http/http-metrics.ts";
import { startHttpServer } from "./http/http-server.ts";
import { NotificationHub } from "./notifications/hub.ts";
import { createNotificationMetrics } from "./notifications/notification-metrics.ts";
import { createStreamOpener } from "./notifications/open-stream.ts";
import { createMeshReader } from "./routes/mesh-state.ts";

/** How long listeners may take to close their streams when the gateway stops, in milliseconds; they are ended then. */
const farewellMs = 2_000;

/** What a gateway is started with. */
export type GatewayParts = Pick<
  StartOptions<(typeof mesh)["gateway"], Omit<GatewayEnv, "NATS_URL">>,
  "env" | "bus" | "clients" | "publisher" | "clock" | "log" | "metrics"
>;

/** A gateway that listens. */
export interface Gateway {
  /** `http://HOST:PORT`. */
  readonly url: string;
  /** All requests so far. */
  readonly answered: EndpointStats;
  /**
   * Takes requests for `LAME_DUCK_MS` yet, each ending its connection; then lets those finish that run. All within
   * `DRAIN_MS`.
   */
  stop(): Promise<void>;
}

/** Listens for requests, and for keys that are revoked. */
export async function startGateway({
  env,
  bus,
  clients,
  publisher,
  clock,
  log,
  metrics,
}: GatewayParts): Promise<Gateway> {
  const keyCache = new KeyCache({ maxKeys: env.KEY_CACHE_SIZE, believedForMs: env.KEY_CACHE_MS, clock });
  const permissions: AclPermissions = new PermissionCache({ maxDevices: 2_000, believedForMs: 5_000, clock });
  const [keyEvents] = mesh.gateway.subscribes;
  const notificationMetrics = createNotificationMetrics(metrics);
  const listenerLimits = {
    ofMasterKey: env.NOTIFY_MASTER_LISTENERS,
    ofOtherKey: env.NOTIFY_KEY_LISTENERS,
    inAll: env.NOTIFY_LISTENERS,
  };
  const hub = new NotificationHub({
    bus,
    publisher,
    devices: clients.devices,
    clock,
    log,
    metrics: notificationMetrics,
    places: new Places(listenerLimits, "too_many_listeners"),
    deviceUpdated: (id) => permissions.forget(id),
  });
  const openStream = createStreamOpener(hub, {
    maxWaitingBytes: env.NOTIFY_BUFFER_BYTES,
    metrics: notificationMetrics,
  });
  const revocations = subscribe(
    bus,
    keyEvents,
    {
      revoked({ key_ids }) {
        keyCache.revoke(key_ids);
        hub.revoke(key_ids);
      },
    },
    { mode: "each" },
  );
  const forgetAll = bus.onReconnect(() => keyCache.clear());
  // No key is believed before the broker knows that its revocation is to be told here.
  await bus.flush();

  let stopping = false;
  const httpMetrics = createHttpMetrics(metrics);
  const app = createApp({
    settings: env,
    clients,
    keyCache,
    permissions,
    clock,
    log,
    metrics: httpMetrics,
    openStream,
    readMesh: createMeshReader({ bus, clients, clock }),
    meshListeners: new Places(listenerLimits, "too_many_listeners"),
    stopping: () => stopping,
  });
  const server = await startHttpServer({
    app,
    host: env.HOST,
    port: env.PORT,
    socketTimeoutMs: env.SOCKET_TIMEOUT,
    clock,
    log,
  });
  return {
    url: server.url,
    answered: httpMetrics.answered,
    async stop() {
      const lameDuckMs = stopping ? 0 : Math.min(env.LAME_DUCK_MS, env.DRAIN_MS);
      stopping = true;
      if (lameDuckMs > 0) await clock.sleep(lameDuckMs);
      const boundMs = env.DRAIN_MS - lameDuckMs;
      await Promise.all([hub.stop(Math.min(farewellMs, boundMs)), server.stop(boundMs)]);
      forgetAll();
      await revocations.stop();
    },
  };
}
