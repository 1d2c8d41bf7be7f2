import type { Bus } from "./bus.ts";
import { heaviestDevice } from "./heaviest-device.ts";
import type { DroppedBacklog } from "./session-backlog.ts";
import { isMissing, streamManager } from "./streams.ts";
import { mqttHeldPrefix, mqttHeldStream, subjectToken } from "./subjects.ts";

/**
 * Drops what a device published at QoS 2 and never released, under its own client ids and `clientIds`. The broker keeps it by client id
 * and packet number beyond the session: what a later connection publishes under the same number it would take for a repetition,
 * and deliver the old message in its place.
 */
export async function dropHeldMessages(
  bus: Bus,
  deviceId: string,
  clientIds: Iterable<string> = [],
): Promise<void> {
  const id = subjectToken(deviceId, "device id");
  const own = new Set(clientIds).add(id);
  const manager = await streamManager(bus);
  const options = { subjects_filter: `${mqttHeldPrefix}>` };
  const info = await manager.streams.info(mqttHeldStream, options).catch((error: unknown) => {
    if (isMissing(error)) return null;
    throw error;
  });
  const holding = Object.keys(info?.state.subjects ?? {}).map(clientIdOf);
  for (const clientId of new Set(holding)) {
    if (!own.has(clientId) && !clientId.startsWith(`${id}:`)) continue;
    await manager.streams.purge(mqttHeldStream, { filter: `${mqttHeldPrefix}${clientId}.>` });
  }
}

/**
 * When the broker holds more than `maxBytes` of unreleased messages, drops those of the client id that has most: a packet number may be used
 * again as soon as its message is released, so that a device has a few under way and no more. Null when nothing was dropped.
 */
export async function dropHeldBacklog(bus: Bus, maxBytes: number): Promise<DroppedBacklog | null> {
  const manager = await streamManager(bus);
  const info = await manager.streams.info(mqttHeldStream).catch((error: unknown) => {
    if (isMissing(error)) return null;
    throw error;
  });
  if (info === null || info.state.bytes <= maxBytes) return null;
  const clientId = await heaviestDevice(manager, {
    stream: mqttHeldStream,
    prefix: mqttHeldPrefix,
    between: [info.state.first_seq, info.state.last_seq],
    deviceOf: (subject) => clientIdOf(`${mqttHeldPrefix}${subject}`),
  });
  if (clientId === null) return null;
  const { purged } = await manager.streams.purge(mqttHeldStream, {
    filter: `${mqttHeldPrefix}${clientId}.>`,
  });
  return { deviceId: clientId.split(":", 1)[0] ?? "", messages: purged };
}

/** Client ids hold no dot: the broker refuses those that do. */
function clientIdOf(subject: string): string {
  return subject.slice(mqttHeldPrefix.length).split(".", 1)[0] ?? "";
}
