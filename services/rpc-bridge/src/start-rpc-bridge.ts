import type { mesh } from "@devmesh/contracts/mesh";
import { watchBrokerStorage } from "@devmesh/device-broker/broker-canary";
import { bridgeConsumers, canaryTopics } from "@devmesh/device-broker/broker-subjects";
import { createDeviceLink } from "@devmesh/device-broker/device-link";
import { connectDevicesBus, devicesUser } from "@devmesh/device-broker/devices-account";
import { createDiagnosisReporter } from "@devmesh/device-broker/diagnosis-reporter";
import {
  deviceBacklog,
  ensureDeviceConsumer,
  provisionDeviceStream,
} from "@devmesh/device-broker/mqtt-stream";
import { sumOf } from "@devmesh/service-kit/metrics";
import type { StartService } from "@devmesh/service-kit/process/run-service";
import { createCallContext } from "@devmesh/service-kit/rpc/context";
import { createBrokerStorage } from "./broker-housekeeping/broker-storage.ts";
import { createDeviceStreams } from "./broker-housekeeping/device-streams.ts";
import { limitPersistentSessions } from "./broker-housekeeping/session-limit.ts";
import { enforceStorageQuota } from "./broker-housekeeping/storage-quota.ts";
import { createEndSessions, createWipeDevice } from "./broker-housekeeping/wipe-device.ts";
import { createInFlightCalls } from "./calls/in-flight-calls.ts";
import { createEndCallsIfGone, handleDeviceEvents } from "./device-event-handlers.ts";
import type { RpcBridgeEnv } from "./env.ts";
import { createDeviceMessages } from "./events/device-messages.ts";
import { subscribeToDevices } from "./events/device-subscriptions.ts";
import { createBridgeMetrics } from "./metrics.ts";
import { openMqttLink } from "./mqtt-link.ts";
import { createReconciliation } from "./reconcile.ts";
import { createRpcBridge, replyHandler } from "./rpc-bridge.ts";
import { createDeviceShadows } from "./shadow/device-shadows.ts";
import { createDeltaPublisher } from "./shadow/shadow-delta.ts";

/** How long before the end of a drain the remaining calls end, in milliseconds. */
const drainMarginMs = 1_000;

/** How long `devices` may take to list the connections of a device, in milliseconds. */
const connectionsTimeoutMs = 5_000;

/** Interval of log lines while the start waits, in milliseconds. */
const waitLogMs = 5_000;

/** Connects the bridge to devices and to the mesh. */
export const startRpcBridge: StartService<(typeof mesh)["rpc-bridge"], RpcBridgeEnv> = async (parts) => {
  const { env, bus, publisher, clients, log, clock, ready, signal: stopping } = parts;
  const { devices } = clients;
  const devicesBus = await connectDevicesBus(parts);
  const replica = bus.replicaId;
  const life = new AbortController();
  const common = { clock, log, signal: life.signal };
  const login = {
    urls: env.MQTT_URL,
    user: devicesUser(env.NATS_USER ?? bus.name),
    password: env.NATS_DEVICES_PASSWORD,
    tlsCert: env.MQTT_TLS_CERT,
  };

  const calls = createInFlightCalls({ clock, maxInFlight: env.RPC_MAX_IN_FLIGHT });
  const streams = createDeviceStreams({
    async provisionStreams() {
      await provisionDeviceStream(devicesBus, { maxBytes: env.DEVICE_STREAM_MAX_BYTES, signal: life.signal });
      for (const name of bridgeConsumers) await ensureDeviceConsumer(devicesBus, name);
    },
    ...common,
  });
  // Only a publication over MQTT is retained.
  const mqttLink = openMqttLink({
    ...common,
    login,
    clientId: `_rpc-bridge-${replica}`,
    onConnect: streams.provision,
  });
  const backlog = async () => {
    const each = await Promise.all(bridgeConsumers.map((name) => deviceBacklog(devicesBus, name)));
    return each.reduce((sum, messages) => sum + messages, 0);
  };
  const metrics = createBridgeMetrics(parts.metrics.registry, {
    callsInFlight: () => calls.size,
    backlog,
    certificateExpiresAt: () => mqttLink.certificateExpiresAt,
  });
  const online = new Set<string>();
  const endCallsIfGone = createEndCallsIfGone({ ...common, calls, devices, online });
  let connections = 1;
  const deviceLink = createDeviceLink({
    bus: devicesBus,
    connect: () => connectDevicesBus(parts, `devices bus ${++connections}`),
    replica,
    onReply: replyHandler(calls, metrics),
  });
  // Separate: the broker closes a connection whose publication it cannot store.
  const canaryLink = openMqttLink({ ...common, login, clientId: `_rpc-bridge-${replica}-canary` });
  const deltas = createDeltaPublisher({ ...common, devices, link: mqttLink });
  const report = createDiagnosisReporter({ clock, publish: publisher.diagnostics });
  const shadows = createDeviceShadows({ ...common, devices, link: deviceLink, report });
  const messages = createDeviceMessages({
    clock,
    log,
    shadows,
    publisher,
    metrics,
    report,
    perSecond: env.DEVICE_MESSAGE_RATE,
  });
  const storage = createBrokerStorage({
    bus: devicesBus,
    link: mqttLink,
    streamBytes: env.DEVICE_STREAM_MAX_BYTES,
    signal: life.signal,
  });
  const endSessions = createEndSessions(login);
  const wipe = createWipeDevice({
    endSessions,
    link: mqttLink,
    storage,
    forget: deltas.forget,
  });

  ready("mqtt", () => mqttLink.connected);
  ready("ingestion", () => streams.ready);
  await mqttLink.ready;
  while (!stopping.aborted && !(await streams.untilReady(waitLogMs)))
    log.info("waiting for the broker's streams");

  const canary = watchBrokerStorage({
    bus: devicesBus,
    publish: () => canaryLink.publish(canaryTopics["rpc-bridge"], ""),
    connected: () => canaryLink.connected,
    signal: stopping,
  });
  ready("broker storage", canary.isStoring);
  ready("broker stream full", canary.hasRoom);

  const reportHoarding = (id: string) =>
    void publisher.hoarding({ id, timestamp: clock.now().toISOString() });
  const storageQuota = enforceStorageQuota({ ...common, storage, reportHoarding, metrics });
  const sessionLimit = limitPersistentSessions({
    ...common,
    bus: devicesBus,
    async connectedClientIds(id) {
      using call = createCallContext({ timeoutMs: connectionsTimeoutMs, signal: life.signal, clock });
      return (await devices.readConnections({ id }, call)).client_ids;
    },
    endSessions,
    keptHours: env.KEPT_SESSION_HOURS,
    metrics,
    report,
  });

  const deviceEvents = handleDeviceEvents({ bus, deltas, endCallsIfGone });

  // Subscribed before it asks: no change in between is lost.
  const reconcile = createReconciliation({ ...common, devices, deltas });
  await bus.flush();
  reconcile();
  const ignoreReconnects = bus.onReconnect(() => {
    online.clear();
    reconcile();
  });

  const deviceMessages = subscribeToDevices({ bus: devicesBus, messages, stopping, signal: life.signal });

  // During a drain most calls in flight get their answer; the others fail in time to be retried on another replica.
  const endLongCalls = () => void clock.schedule(Math.max(0, env.DRAIN_MS - drainMarginMs), calls.endAll);
  stopping.addEventListener("abort", endLongCalls, { once: true });

  return {
    figures: { messages_handled: () => sumOf(metrics.messagesHandled) },
    implementation: createRpcBridge({
      calls,
      devices,
      online,
      link: deviceLink,
      publisher,
      endSessions,
      wipe,
      metrics,
      tracer: bus.tracer,
      clock,
      backlog,
      replica,
      maxFrameBytes: env.RPC_MAX_FRAME_BYTES,
    }),
    async stop() {
      calls.endAll();
      ignoreReconnects();
      const ended = Promise.all([deviceMessages.stop(), deviceEvents.stop()]).then(deltas.idle);
      await Promise.race([ended, clock.sleep(drainMarginMs)]);
      life.abort(new Error("the bridge is stopping"));
      await Promise.race([ended, clock.sleep(drainMarginMs)]);
    },
    async close() {
      const canaryClosed = canary.ended.then(() => canaryLink.close({ force: true }));
      await Promise.all([mqttLink.close(), canaryClosed, storageQuota, sessionLimit]);
    },
  };
};
