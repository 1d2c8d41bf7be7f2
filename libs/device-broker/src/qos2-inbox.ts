import { deviceOfClientId } from "@devmesh/contracts/mqtt";
import type { Bus } from "@devmesh/service-kit/bus";
import { findStream, streamManager } from "@devmesh/service-kit/connection/streams";
import { subjectToken } from "@devmesh/service-kit/subjects";
import type { JetStreamManager } from "@nats-io/jetstream";
import { mqttQos2Prefix, mqttQos2Stream } from "./broker-subjects.ts";
import type { DroppedBacklog } from "./session-backlog.ts";
import { findTopPublisher } from "./top-publisher.ts";

/**
 * Drops the unreleased QoS 2 messages of a device, under its own client ids and `clientIds`. The broker keeps them
 * beyond the session and would deliver the old message instead of a later one with the same packet number.
 */
export async function dropQos2Messages(
  bus: Bus,
  deviceId: string,
  clientIds: Iterable<string> = [],
): Promise<void> {
  const id = subjectToken(deviceId, "device id");
  const own = new Set(clientIds);
  const manager = await streamManager(bus);
  const info = await findStream(manager, mqttQos2Stream, { subjects_filter: `${mqttQos2Prefix}>` });
  const subjects = Object.keys(info?.state.subjects ?? {});
  const holding = subjects.map((subject) => clientIdOf(subject.slice(mqttQos2Prefix.length)));
  for (const clientId of new Set(holding)) {
    if (own.has(clientId) || deviceOfClientId(clientId) === id) await purgeHeld(manager, clientId);
  }
}

/**
 * When the broker holds more than `maxBytes` of unreleased messages, drops those of the client id that has most.
 * Well-behaved devices have a few. Null when nothing was dropped.
 */
export async function dropQos2Backlog(bus: Bus, maxBytes: number): Promise<DroppedBacklog | null> {
  const manager = await streamManager(bus);
  const info = await findStream(manager, mqttQos2Stream);
  if (info === null || info.state.bytes <= maxBytes) return null;
  const clientId = await findTopPublisher(manager, {
    stream: mqttQos2Stream,
    prefix: mqttQos2Prefix,
    between: [info.state.first_seq, info.state.last_seq],
    deviceOf: clientIdOf,
  });
  if (clientId === null) return null;
  return { deviceId: deviceOfClientId(clientId), messages: await purgeHeld(manager, clientId) };
}

async function purgeHeld(manager: JetStreamManager, clientId: string): Promise<number> {
  const filter = `${mqttQos2Prefix}${clientId}.>`;
  return (await manager.streams.purge(mqttQos2Stream, { filter })).purged;
}

/** Of a subject without the prefix. Client ids hold no dot: the broker refuses those that do. */
function clientIdOf(subject: string): string {
  return subject.split(".", 1)[0] ?? "";
}
