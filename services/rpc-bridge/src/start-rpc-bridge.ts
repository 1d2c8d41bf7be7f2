import type { mesh } from "@devmesh/contracts/mesh";
import { watchBrokerStorage } from "@devmesh/device-broker/broker-canary";
import { deviceBacklog } from "@devmesh/device-broker/device-backlog";
import { provisionDeviceStreams } from "@devmesh/device-broker/mqtt-stream";
import { createCallContext } from "@devmesh/service-kit/context";
import type { StartedService, StartOptions } from "@devmesh/service-kit/run-service";
import { devicesUser } from "@devmesh/service-kit/subjects";
import { createBrokerStorage } from "./broker-housekeeping/broker-storage.ts";
import { createIngestion } from "./broker-housekeeping/device-streams.ts";
import { limitKeptSessions } from "./broker-housekeeping/session-limit.ts";
import { keepBrokerRoom } from "./broker-housekeeping/storage-quota.ts";
import { createEndSessions, createWipeDevice } from "./broker-housekeeping/wipe-device.ts";
import { createCalls } from "./calls/calls.ts";
import { createDeviceLink } from "./calls/device-link.ts";
import { departureHandler } from "./departures.ts";
import { hearRegistry } from "./device-event-handlers.ts";
import { canaryTopic } from "./device-topics.ts";
import type { RpcBridgeEnv } from "./env.ts";
import { createDeviceMessages } from "./events/device-messages.ts";
import { startDeviceIntake } from "./events/device-subscriptions.ts";
import { createBridgeMetrics } from "./metrics.ts";
import { openMqttLink } from "./mqtt-link.ts";
import { createMissedChanges } from "./reconcile.ts";
import { createRpcBridge, replyHandler } from "./rpc-bridge.ts";
import { createDeviceShadows } from "./shadow/device-shadows.ts";
import { createDeltaPublisher } from "./shadow/shadow-delta.ts";

type Declaration = (typeof mesh)["rpc-bridge"];

/** How long before the end of a drain the calls that still wait are told so, in milliseconds. */
const farewellMs = 1_000;

/** How long `devices` may take to list the connections of a device, in milliseconds. */
const connectionsMs = 5_000;

/** How often a start that waits says so, in milliseconds. */
const noticeMs = 5_000;

/** Connects the bridge to devices and to the mesh. */
export async function startRpcBridge(
  parts: StartOptions<Declaration, RpcBridgeEnv>,
): Promise<StartedService<Declaration["serves"]>> {
  const { env, bus, devicesBus, publisher, clients, log, clock, ready, signal: stopping } = parts;
  const { devices } = clients;
  const replica = bus.replicaId;
  const life = new AbortController();
  const common = { clock, log, signal: life.signal };
  const login = {
    urls: env.MQTT_URL,
    user: devicesUser(env.NATS_USER ?? bus.name),
    password: env.NATS_DEVICES_PASSWORD,
    tlsCert: env.MQTT_TLS_CERT,
  };

  const calls = createCalls({ clock, maxInFlight: env.RPC_MAX_IN_FLIGHT });
  const metrics = createBridgeMetrics(parts.metrics.registry, () => calls.size);
  const ingestion = createIngestion({
    provisionStreams: () =>
      provisionDeviceStreams(devicesBus, { maxBytes: env.DEVICE_STREAM_MAX_BYTES, signal: life.signal }),
    ...common,
  });
  const deviceLink = createDeviceLink({ bus: devicesBus, replica, onReply: replyHandler(calls, metrics) });
  // Only a publication over MQTT is retained.
  const mqttLink = openMqttLink({
    ...common,
    login,
    clientId: `_rpc-bridge-${replica}`,
    onConnect: ingestion.provision,
  });
  // Of its own: the broker closes a connection whose publication it cannot store.
  const canaryLink = openMqttLink({ ...common, login, clientId: `_rpc-bridge-${replica}-canary` });
  const deltas = createDeltaPublisher({ ...common, devices, link: mqttLink });
  const shadows = createDeviceShadows({ clock, log, devices, link: deviceLink });
  const messages = createDeviceMessages({
    clock,
    log,
    shadows,
    publisher,
    metrics,
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
    log,
    endSessions,
    link: mqttLink,
    ...storage,
    forget: deltas.forget,
  });

  ready("mqtt", () => mqttLink.connected);
  ready("ingestion", () => ingestion.ready);
  await mqttLink.ready;
  while (!stopping.aborted && !(await ingestion.untilReady(noticeMs)))
    log.info("waiting for the broker's streams");

  const canary = watchBrokerStorage({
    bus: devicesBus,
    publish: () => canaryLink.publish(canaryTopic, ""),
    connected: () => canaryLink.connected,
    signal: stopping,
  });
  ready("broker storage", canary.isStoring);
  ready("broker stream full", canary.hasRoom);

  const reportHoarding = (id: string) =>
    void publisher.live.hoarding({ id, timestamp: clock.now().toISOString() });
  const room = keepBrokerRoom({ ...common, ...storage, reportHoarding, metrics });
  const sessionLimit = limitKeptSessions({
    ...common,
    bus: devicesBus,
    async connectedClientIds(id) {
      using call = createCallContext({ timeoutMs: connectionsMs, signal: life.signal, clock });
      return (await devices.readConnections({ id }, call)).client_ids;
    },
    endSessions,
    keptHours: env.KEPT_SESSION_HOURS,
    metrics,
  });

  const endCalls = departureHandler({ calls, devices, clock, signal: life.signal });
  const heard = hearRegistry({ bus, endCalls, deltas });

  // Heard before asked: nothing that changes in between is lost.
  const missed = createMissedChanges({ ...common, devices, deltas });
  await bus.flush();
  missed.makeUp();
  const ignoreReconnects = bus.onReconnect(missed.makeUp);

  const intake = startDeviceIntake({ bus: devicesBus, messages, stopping, signal: life.signal });

  // While it drains, other replicas take the new calls. Most of those in flight are answered soon; the rest is told
  // in time that it has to be made again, which beats a connection that is cut.
  const endLongCalls = () => void clock.schedule(Math.max(0, env.DRAIN_MS - farewellMs), calls.endAll);
  stopping.addEventListener("abort", endLongCalls, { once: true });

  return {
    implementation: createRpcBridge({
      calls,
      devices,
      link: deviceLink,
      publisher,
      ingestion,
      endSessions,
      wipe,
      metrics,
      clock,
      backlog: () => deviceBacklog(devicesBus, "rpc-bridge"),
      replica,
      maxFrameBytes: env.RPC_MAX_FRAME_BYTES,
    }),
    async stop() {
      calls.endAll();
      ignoreReconnects();
      const ended = Promise.all([intake.stop(), heard.stop()]).then(deltas.idle);
      await Promise.race([ended, clock.sleep(farewellMs)]);
      life.abort(new Error("the bridge is stopping"));
      await Promise.race([ended, clock.sleep(farewellMs)]);
    },
    async close() {
      const canaryClosed = canary.ended.then(() => canaryLink.close({ force: true }));
      await Promise.all([mqttLink.close(), canaryClosed, room, sessionLimit]);
    },
  };
}
