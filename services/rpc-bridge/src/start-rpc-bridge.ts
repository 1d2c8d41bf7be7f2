import { deviceEvents } from "@devmesh/contracts/devices";
import type { mesh } from "@devmesh/contracts/mesh";
import { deviceBacklog } from "@devmesh/service-kit/device-backlog";
import { subscribe } from "@devmesh/service-kit/events";
import { dropHeldBacklog, dropHeldMessages } from "@devmesh/service-kit/held-messages";
import { listKeptSessions } from "@devmesh/service-kit/kept-sessions";
import { provisionDeviceStreams } from "@devmesh/service-kit/mqtt-stream";
import { findRetainedHoard, listRetainedTopics } from "@devmesh/service-kit/retained-messages";
import type { ServiceParts, StartedService } from "@devmesh/service-kit/run-service";
import { dropSessionBacklog } from "@devmesh/service-kit/session-backlog";
import { keepBrokerRoom } from "./broker-room.ts";
import { createCalls } from "./calls.ts";
import { departureHandler } from "./departures.ts";
import { startDeviceIntake } from "./device-intake.ts";
import { createDeviceMessages } from "./device-messages.ts";
import { createDeviceShadows } from "./device-shadows.ts";
import { deviceTopics, replyFilters } from "./device-topics.ts";
import type { RpcBridgeEnv } from "./env.ts";
import { createIngestion } from "./ingestion.ts";
import { createBridgeMetrics } from "./metrics.ts";
import { createMissedChanges } from "./missed-changes.ts";
import { openMqttLink } from "./mqtt-link.ts";
import { createRpcBridge, replyHandler } from "./rpc-bridge.ts";
import { createDeltaPublisher } from "./shadow-delta.ts";
import { clearRetainedMessage, createWipeDevice } from "./wipe-device.ts";

type Declaration = (typeof mesh)["rpc-bridge"];

/** How long before the end of a drain the calls that still wait are told so, in milliseconds. */
const farewellMs = 1_000;

/**
 * The part of `DEVICE_STREAM_MAX_BYTES` beyond which what waits for kept sessions alone is dropped. Retained messages, and those at
 * QoS 2 that were never released, which the broker stores apart, may take as much each.
 */
const sessionShare = 0.5;

/** Retained messages of a hoarder that are cleared before the broker is asked again. */
const clearedAtOnce = 1_000;

/** How often a start that waits says so, in milliseconds. */
const noticeMs = 5_000;

/** Connects the bridge to devices and to the mesh. */
export async function startRpcBridge(
  parts: ServiceParts<Declaration, RpcBridgeEnv>,
): Promise<StartedService<Declaration["serves"]>> {
  const { env, bus, devicesBus, publisher, clients, log, clock, ready, signal: stopping } = parts;
  const { devices } = clients;
  const replica = bus.replicaId;
  const life = new AbortController();
  const common = { clock, log, signal: life.signal };
  const login = {
    urls: env.MQTT_URL,
    user: `${env.NATS_USER ?? bus.name}.devices`,
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
  const callLink = openMqttLink({
    ...common,
    login,
    clientId: `_rpc-bridge-${replica}`,
    filters: replyFilters(replica),
    onMessage: replyHandler(calls, replica, metrics),
    onConnect: ingestion.provision,
  });
  // The broker stores a retained message before it reads on: on a connection of their own they delay no call.
  const stateLink = openMqttLink({ ...common, login, clientId: `_rpc-bridge-${replica}-state` });
  const deltas = createDeltaPublisher({ ...common, devices, link: stateLink });
  const shadows = createDeviceShadows({ clock, log, devices, link: callLink });
  const messages = createDeviceMessages({
    clock,
    log,
    shadows,
    publisher,
    metrics,
    perSecond: env.DEVICE_MESSAGE_RATE,
  });
  const wipe = createWipeDevice({
    log,
    login,
    link: stateLink,
    keptSessions: async (deviceId, signal) => {
      const kept = await listKeptSessions(devicesBus, signal);
      return kept.filter((session) => session.deviceId === deviceId).map(({ clientId }) => clientId);
    },
    retainedTopics: (deviceId) => listRetainedTopics(devicesBus, deviceId),
    dropHeld: (deviceId, clientIds) => dropHeldMessages(devicesBus, deviceId, clientIds),
    forget: deltas.forget,
  });

  ready("mqtt", () => callLink.connected && stateLink.connected);
  ready("ingestion", () => ingestion.ready);
  await Promise.all([callLink.ready, stateLink.ready]);
  while (!stopping.aborted && !(await ingestion.untilReady(noticeMs)))
    log.info("waiting for the broker's streams");

  const maxBytes = env.DEVICE_STREAM_MAX_BYTES * sessionShare;
  const dropBacklog = async () => {
    const ofSessions = await dropSessionBacklog(devicesBus, { maxBytes, signal: life.signal });
    const unreleased = await dropHeldBacklog(devicesBus, maxBytes);
    return unreleased === null ? ofSessions : [...ofSessions, unreleased];
  };
  const room = keepBrokerRoom({
    ...common,
    dropBacklog,
    findRetainedHoard: () => findRetainedHoard(devicesBus, maxBytes),
    async clearRetained(deviceId) {
      const own = (await listRetainedTopics(devicesBus, deviceId)).filter(
        (topic) => topic !== deviceTopics.delta(deviceId),
      );
      const cleared = own.slice(0, clearedAtOnce);
      await Promise.all(cleared.map((topic) => clearRetainedMessage(stateLink, topic)));
      return cleared.length;
    },
    metrics,
  });

  const endCalls = departureHandler({ calls, devices, clock, signal: life.signal });
  const heard = [
    subscribe(
      bus,
      { events: deviceEvents, names: ["offline", "deleted"] },
      { offline: endCalls, deleted: endCalls },
      { mode: "each" },
    ),
    subscribe(
      bus,
      { events: deviceEvents, names: ["online", "updated", "created"] },
      {
        online: ({ id }) => deltas.welcome(id),
        updated: ({ id }) => deltas.refresh(id),
        created: ({ id }) => deltas.refresh(id),
      },
      { mode: "one" },
    ),
  ];

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
      link: callLink,
      publisher,
      ingestion,
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
      const heardOut = [intake.stop(), ...heard.map((listening) => listening.stop())];
      const ended = Promise.all(heardOut).then(deltas.idle);
      await Promise.race([ended, clock.sleep(farewellMs)]);
      life.abort(new Error("the bridge is stopping"));
      await Promise.race([ended, clock.sleep(farewellMs)]);
    },
    async close() {
      await Promise.all([callLink.close(), stateLink.close(), room]);
    },
  };
}
