import { recordRoot } from "@devmesh/contracts/model/device-id";
import { deviceTopics } from "@devmesh/contracts/mqtt";
import { subjectToken } from "@devmesh/service-kit/subjects";
import { subjectFor, subjectOf } from "./device-topic.ts";

/** Where nats-server asks whether a login is good. */
export const authCalloutSubject = "$SYS.REQ.USER.AUTH";

/** The account that devices live in. */
export const devicesAccount = "DEVICES";
/** The account that services talk in. */
export const meshAccount = "MESH";
/** The account of the servers' own events and requests. */
export const systemAccount = "SYS";

/** Published by a server for each login into account DEVICES. */
export const deviceConnectSubject = `$SYS.ACCOUNT.${devicesAccount}.CONNECT`;
/** Published by a server for each closed connection of account DEVICES. */
export const deviceDisconnectSubject = `$SYS.ACCOUNT.${devicesAccount}.DISCONNECT`;
/** Asks every server for its connections. */
export const connectionsSubject = "$SYS.REQ.SERVER.PING.CONNZ";
/** Asks one server to close one connection. */
export function kickSubject(serverId: string): string {
  return `$SYS.REQ.SERVER.${subjectToken(serverId, "server id")}.KICK`;
}

/** The broker's own stream of what was acknowledged to devices at QoS 1 and 2. */
export const mqttStream = "$MQTT_msgs";
/** The broker's own stream of retained messages. */
export const mqttRetainedStream = "$MQTT_rmsgs";
/** Prefix of an MQTT topic, as a subject, inside `$MQTT_msgs`. */
export const mqttStreamPrefix = "$MQTT.msgs.";

/**
 * The durable consumers on `$MQTT_msgs`, each named after the service that pulls it, with what it handles. One filter
 * each: for a consumer with several, nats-server looks through all subjects for each message.
 */
export const deviceConsumers = {
  data: mqttStreamPrefix + subjectFor(`${recordRoot}/{name...}`),
  // Holds the deltas that the mesh publishes, too.
  "rpc-bridge": mqttStreamPrefix + subjectFor("{id}/shadow/{name...}"),
  "rpc-bridge-events": mqttStreamPrefix + subjectFor("{id}/event/{name...}"),
} as const;

/** A consumer on `$MQTT_msgs`, by its name. */
export type DeviceConsumer = keyof typeof deviceConsumers;

/**
 * What the broker hands to a consumer. `data` is handed all messages, most of which are records: to find the next one
 * of a filter among many that wait, nats-server looks through all their subjects, as many as a fleet has topics.
 */
export function consumerFilter(durable: DeviceConsumer): string {
  return durable === "data" ? `${mqttStreamPrefix}>` : deviceConsumers[durable];
}

const recordsPrefix = deviceConsumers.data.slice(0, -1);

/** Whether a consumer handles what it is handed; else it acknowledges that and no more. */
export function handles(durable: DeviceConsumer, subject: string): boolean {
  return durable !== "data" || subject.startsWith(recordsPrefix);
}

/** Those of `rpc-bridge`. */
export const bridgeConsumers = [
  "rpc-bridge-events",
  "rpc-bridge",
] as const satisfies readonly DeviceConsumer[];

/** Canary topics, each held by a consumer of its service. No device has such an id. */
export const canaryTopics = {
  data: `${recordRoot}/_canary`,
  "rpc-bridge": deviceTopics.event("_canary", "stored"),
} as const satisfies Partial<Record<DeviceConsumer, string>>;

/** The subjects of {@link canaryTopics} in `$MQTT_msgs`. */
export const canarySubjects = {
  data: mqttStreamPrefix + subjectOf(canaryTopics.data),
  "rpc-bridge": mqttStreamPrefix + subjectOf(canaryTopics["rpc-bridge"]),
};

/** The one priority group of each of them: within it, one replica gets all messages (ADR 17). */
export const replicaGroup = "replicas";

/** Prefix of an MQTT topic, as a subject, inside `$MQTT_rmsgs`. */
export const mqttRetainedPrefix = "$MQTT.rmsgs.";

/** The broker's own stream of messages at QoS 2 between their publication and their release. */
export const mqttQos2Stream = "$MQTT_qos2in";

/** Prefix of client id and packet number, as a subject, inside `$MQTT_qos2in`. */
export const mqttQos2Prefix = "$MQTT.qos2.in.";

/** The broker's own stream of sessions, one record each. */
export const mqttSessionStream = "$MQTT_sess";

/** Prefix of a session, as a subject, inside `$MQTT_sess`. */
export const mqttSessionPrefix = "$MQTT.sess.";

/**
 * Requests of JetStream in account DEVICES that account MESH imports, by their subject there: what `keys` needs to see
 * that the broker stores what devices publish.
 */
export const deviceStoreRequests = {
  "broker.devices.stream": `$JS.API.STREAM.INFO.${mqttStream}`,
  "broker.devices.consumer.data": `$JS.API.CONSUMER.INFO.${mqttStream}.data`,
  "broker.devices.consumer.rpc-bridge": `$JS.API.CONSUMER.INFO.${mqttStream}.rpc-bridge`,
  "broker.devices.consumer.rpc-bridge-events": `$JS.API.CONSUMER.INFO.${mqttStream}.rpc-bridge-events`,
} as const;
