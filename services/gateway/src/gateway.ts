import { mesh } from "@devmesh/contracts/mesh";
import { withTimeout } from "@devmesh/service-kit/clock";
import { subscribe } from "@devmesh/service-kit/events/subscription";
import type { StartOptions } from "@devmesh/service-kit/process/run-service";
import type { EndpointStats } from "@devmesh/service-kit/rpc/serve";
import { createApp } from "./app.ts";
import { KeyCache } from "./auth/key-cache.ts";
import { PermissionCache } from "./auth/permission-cache.ts";
import type { GatewayEnv } from "./env.ts";
import { createFirmwareContent } from "./firmware/firmware-content.ts";
import { ConcurrencyLimit } from "./http/concurrency-limit.ts";
import { ConnectionLimit } from "./http/connection-limit.ts";
import { createHttpMetrics } from "./http/http-metrics.ts";
import { startHttpServer } from "./http/http-server.ts";
import { ChangeLog } from "./mesh/change-log.ts";
import { createMeshHistory, keepHistory } from "./mesh/mesh-history.ts";
import { createMeshReader, createStateReading } from "./mesh/mesh-state.ts";
import { NotificationHub } from "./notifications/hub.ts";
import { createNotificationMetrics } from "./notifications/notification-metrics.ts";
import { createStreamOpener } from "./notifications/open-stream.ts";

/** Timeout for listeners to close their streams, and for the last changes to be written, in milliseconds. */
const closeMs = 2_000;

export type GatewayOptions = Pick<
  StartOptions<(typeof mesh)["gateway"], Omit<GatewayEnv, "NATS_URL">>,
  "env" | "bus" | "clients" | "publisher" | "clock" | "log" | "metrics"
>;

/** A gateway that listens. */
export interface Gateway {
  /** `http://HOST:PORT`. */
  readonly url: string;
  /** Totals of all requests. */
  readonly answered: EndpointStats;
  /** Accepts requests for `LAME_DUCK_MS`, closing each connection, then lets running ones finish; `DRAIN_MS` in all. */
  stop(): Promise<void>;
}

/** Subscribes to revoked keys, then listens for requests. */
export async function startGateway({
  env,
  bus,
  clients,
  publisher,
  clock,
  log,
  metrics,
}: GatewayOptions): Promise<Gateway> {
  const keyCache = new KeyCache({ maxKeys: env.KEY_CACHE_SIZE, ttlMs: env.KEY_CACHE_MS, clock });
  const permissions = new PermissionCache({ maxDevices: 2_000, ttlMs: 5_000, clock });
  const [keyEvents] = mesh.gateway.subscribes;
  const notificationMetrics = createNotificationMetrics(metrics);
  const limitListeners = () =>
    new ConcurrencyLimit({
      perMasterKey: env.NOTIFY_MASTER_LISTENERS,
      perOtherKey: env.NOTIFY_KEY_LISTENERS,
      total: env.NOTIFY_LISTENERS,
      refusal: "too_many_listeners",
    });
  const hub = new NotificationHub({
    bus,
    publisher,
    devices: clients.devices,
    clock,
    log,
    metrics: notificationMetrics,
    limit: limitListeners(),
    onDeviceUpdated: (id) => permissions.forget(id),
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
  const dropKeys = () => keyCache.clear();
  const connectionHooks = [bus.onDisconnect(dropKeys), bus.onReconnect(dropKeys)];
  // Keys are cached only after the subscription to revocations is active.
  await bus.flush();

  let stopping = false;
  const httpMetrics = createHttpMetrics(metrics);
  const read = createStateReading({ bus, clients, clock });
  const history = createMeshHistory(bus);
  const changes = new ChangeLog({ bus, clock, log });
  const life = new AbortController();
  const keeping = keepHistory({ store: history, read, clock, log, signal: life.signal });
  const app = createApp({
    settings: env,
    clients,
    keyCache,
    permissions,
    clock,
    log,
    metrics: httpMetrics,
    tracer: bus.tracer,
    openStream: createStreamOpener(hub, {
      maxWaitingBytes: env.NOTIFY_BUFFER_BYTES,
      metrics: notificationMetrics,
    }),
    readMesh: createMeshReader(read, clock),
    readHistory: history.read,
    answerContent: createFirmwareContent({
      jobs: clients.jobs,
      cacheBytes: env.FIRMWARE_CACHE_BYTES,
      metrics,
      clock,
    }),
    changes,
    meshListeners: limitListeners(),
    stopping: () => stopping,
  });
  const lameDuckMs = Math.min(env.LAME_DUCK_MS, env.DRAIN_MS);
  const server = await startHttpServer({
    app,
    host: env.HOST,
    port: env.PORT,
    socketTimeoutMs: env.SOCKET_TIMEOUT,
    connectionLimit: new ConnectionLimit({
      perAddress: env.HTTP_CONNECTIONS_PER_ADDRESS,
      total: env.HTTP_CONNECTIONS,
      isProxy: app.isProxy,
      metrics: httpMetrics,
    }),
    lameDuckMs,
    clock,
    log,
  });
  return {
    url: server.url,
    answered: httpMetrics.answered,
    async stop() {
      const isFirst = !stopping;
      stopping = true;
      app.endConnections();
      life.abort();
      if (isFirst && lameDuckMs > 0) await clock.sleep(lameDuckMs);
      const timeoutMs = env.DRAIN_MS - lameDuckMs;
      await Promise.all([hub.stop(Math.min(closeMs, timeoutMs)), server.stop(timeoutMs)]);
      for (const remove of connectionHooks) remove();
      await Promise.all([revocations.stop(), keeping, withTimeout(closeMs, changes.stop(), clock)]);
    },
  };
}
