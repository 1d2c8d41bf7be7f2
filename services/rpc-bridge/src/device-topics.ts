import { DeviceId } from "@devmesh/contracts/model/device-id";
import { canarySubjects, mqttStreamPrefix } from "@devmesh/device-broker/broker-subjects";
import type { SessionRecord } from "@devmesh/device-broker/persistent-sessions";

/**
 * The topics between the bridge and one device (api.md, MQTT); the only place where the bridge builds a topic. The id
 * must be a {@link DeviceId}.
 */
export const deviceTopics = {
  calls: (id: string) => `${id}/rpc`,
  delta: (id: string) => `${id}/shadow/delta`,
  shadow: (id: string) => `${id}/shadow`,
  updateAccepted: (id: string) => `${id}/shadow/update/accepted`,
  updateRejected: (id: string) => `${id}/shadow/update/rejected`,
};

/** The bridge publishes here at QoS 1, as a device would, to check that the broker stores it. */
export const canaryTopic = canarySubjects["rpc-bridge"].slice(mqttStreamPrefix.length).replaceAll(".", "/");

/** Topics of a device's RPC replies to one replica: of mDash firmware, and of Mongoose OS. */
export function replyTopics(deviceId: string, replica: string): string[] {
  return [`${deviceId}/r/rpc`, `${replySource(deviceId, replica)}/rpc`];
}

/** The `src` of a frame, to which Mongoose OS adds `/rpc`. */
export function replySource(deviceId: string, replica: string): string {
  return `${deviceId}/r/${replica}`;
}

/** The NATS subject of a topic of this module: its levels contain no dot and are not empty. */
export function subjectOf(topic: string): string {
  return topic.replaceAll("/", ".");
}

/** What a device may publish, except RPC replies and data. */
export type DeviceTopic =
  | { readonly kind: "shadow_update"; readonly deviceId: string }
  | { readonly kind: "shadow_get"; readonly deviceId: string }
  /** `name` follows `ID/event/`: one level or more, none of them empty. */
  | { readonly kind: "event"; readonly deviceId: string; readonly name: string };

/** In characters. */
const maxEventName = 256;

/** Parses the levels of a topic; null if no device may use it, or for a NATS wildcard, a plain letter in MQTT. */
export function parseDeviceTopic(topicLevels: readonly string[]): DeviceTopic | null {
  const [deviceId = "", ...levels] = topicLevels;
  if (!isDeviceId(deviceId) || levels.some(isUnsafeLevel)) return null;
  const path = levels.join("/");
  if (path === "shadow/update") return { kind: "shadow_update", deviceId };
  if (path === "shadow/get") return { kind: "shadow_get", deviceId };
  if (levels[0] !== "event" || levels.length < 2) return null;
  const name = path.slice("event/".length);
  return name.length > maxEventName ? null : { kind: "event", deviceId, name };
}

export function isDeviceId(level: string): boolean {
  return DeviceId.safeParse(level).success;
}

function isUnsafeLevel(level: string): boolean {
  return level === "" || level === "*" || level === ">" || /[+#/\0]/.test(level);
}

/** Whether a device may log in to the broker by this client id (api.md, MQTT). */
export function isClientIdOf(deviceId: string, clientId: string): boolean {
  return clientId === deviceId || (clientId.startsWith(`${deviceId}:`) && clientIdSuffix.test(clientId));
}

/** Whether the broker may have generated the client id. A client may send one of this form, too. */
export function isGeneratedClientId(clientId: string): boolean {
  return /^[0-9A-Za-z]{22}$/.test(clientId);
}

/** The device whose session it is. A generated client id without subscriptions counts for itself. */
export function deviceOfSession({ clientId, subscribedLevel }: SessionRecord): string {
  if (isGeneratedClientId(clientId)) return subscribedLevel ?? clientId;
  return clientId.split(":", 1)[0] ?? "";
}

const clientIdSuffix = /^[^:]*:[A-Za-z0-9_:-]{1,64}$/;
