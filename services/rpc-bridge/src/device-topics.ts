import { DeviceId } from "@devmesh/contracts/model/device-id";
import { deviceOfClientId, generatedClientId, native, topicParser } from "@devmesh/contracts/mqtt";
import type { SessionRecord } from "@devmesh/device-broker/persistent-sessions";

const parseTaken = topicParser(native, "rpc-bridge");

/** What a device may publish, except RPC replies and data. The name of an event has no empty level. */
export type DeviceTopic = NonNullable<ReturnType<typeof parseTaken>>;

/** Parses the levels of a topic; null if no device may use it, or for a NATS wildcard, a plain letter in MQTT. */
export function parseDeviceTopic(topicLevels: readonly string[]): DeviceTopic | null {
  const topic = parseTaken(topicLevels);
  if (topic === null || !isDeviceId(topic.deviceId) || topicLevels.some(isUnsafeLevel)) return null;
  return topic.name.length > native.topics.event.maxNameLength ? null : topic;
}

export function isDeviceId(level: string): boolean {
  return DeviceId.safeParse(level).success;
}

function isUnsafeLevel(level: string): boolean {
  return level === "" || level === "*" || level === ">" || /[+#/\0]/.test(level);
}

/** The device whose session it is. A generated client id without subscriptions counts for itself. */
export function deviceOfSession({ clientId, subscribedDevice }: SessionRecord): string {
  if (generatedClientId.test(clientId)) return subscribedDevice ?? clientId;
  return deviceOfClientId(clientId);
}
