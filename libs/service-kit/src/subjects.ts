import type { ContractDeclaration, EventDeclaration } from "@devmesh/contracts/contract";

/** One token of a subject, as ADR-6 of nats-architecture-and-design defines its restricted term. */
const restrictedTerm = /^[A-Za-z0-9_-]{1,128}$/;

/**
 * A token that may stand in a subject. Throws a `TypeError` when `value` could mean another subject: holds a dot,
 * a wildcard, a blank, or nothing at all.
 */
export function subjectToken(value: string, role: string): string {
  if (!restrictedTerm.test(value))
    throw new TypeError(`${role} ${JSON.stringify(value)} is no subject token`);
  return value;
}

/** Where a method of a contract is called. */
export function methodSubject(
  contract: Pick<ContractDeclaration, "service" | "version">,
  method: string,
): string {
  return `mesh.${subjectToken(contract.service, "service")}.v${contract.version}.${subjectToken(method, "method")}`;
}

/** All events that are kept, the subject of stream `EVENTS`. */
export const allEvents = "event.>";

/** How long events of a kind are kept: an hour, or, of live ones, not at all. */
type Keeping = Pick<EventDeclaration, "live">;

/** Where one event is published; `key` says what it is about, such as a device id. */
export function eventSubject(service: string, name: string, key: string, keeping: Keeping): string {
  return `${eventStem(service, name, keeping)}.${subjectToken(key, "event key")}`;
}

/** All events of one name, whatever they are about. */
export function eventsNamed(service: string, name: string, keeping: Keeping): string {
  return `${eventStem(service, name, keeping)}.*`;
}

function eventStem(service: string, name: string, { live }: Keeping): string {
  return `${live ? "live" : "event"}.${subjectToken(service, "service")}.${subjectToken(name, "event")}`;
}

/** Where jobs of a queue are published. */
export function queueSubject(name: string): string {
  return `queue.${subjectToken(name, "queue")}`;
}

/** Where jobs of a queue that were given up are published. */
export function deadSubject(name: string): string {
  return `dead.${subjectToken(name, "queue")}`;
}

/** The requests every service answers after ADR-32. */
export const discoveryVerbs = ["PING", "INFO", "STATS"] as const;
export type DiscoveryVerb = (typeof discoveryVerbs)[number];

/** All replicas of all services answer it with their counts. */
export const discoverAll = "$SRV.STATS";

/** The three subjects on which one replica answers `verb`: all services, all replicas of it, itself. */
export function discoverySubjects(verb: DiscoveryVerb, service: string, id: string): readonly string[] {
  const name = subjectToken(service, "service");
  return [`$SRV.${verb}`, `$SRV.${verb}.${name}`, `$SRV.${verb}.${name}.${subjectToken(id, "service id")}`];
}

/**
 * The broker's user of a service in account MESH. nats-server looks a login up among its own users before it asks the auth
 * callout, so these names hold a dot, which no device id does.
 */
export function meshUser(service: string): string {
  return `${service}.mesh`;
}

/** The broker's user of a service in account DEVICES. */
export function devicesUser(service: string): string {
  return `${service}.devices`;
}

/** Below this, and nowhere else, a user of the broker receives replies. */
export function inboxPrefix(service: string): string {
  return `_INBOX_${subjectToken(service, "service")}`;
}

/** Name of the stream that holds the jobs of a queue. */
export function queueStream(name: string): string {
  return `QUEUE_${subjectToken(name, "queue").toUpperCase()}`;
}

/** Name of the stream that holds the dead letters of a queue. */
export function deadLetterStream(name: string): string {
  return `DEAD_${subjectToken(name, "queue").toUpperCase()}`;
}

/** The durable consumer that all replicas of a queue's consumer share. */
export const queueConsumer = "worker";

/** Name of the stream that holds the events of the last hour. */
export const eventsStream = "EVENTS";

/** Where nats-server asks whether a login is good. */
export const authCalloutSubject = "$SYS.REQ.USER.AUTH";

/** The account that devices live in. */
export const devicesAccount = "DEVICES";
/** The account that services talk in. */
export const meshAccount = "MESH";
/** The account of the servers' own events and requests. */
export const systemAccount = "SYS";

/** Told by a server for each login into account DEVICES. */
export const deviceConnectSubject = `$SYS.ACCOUNT.${devicesAccount}.CONNECT`;
/** Told by a server for each connection of account DEVICES that ended. */
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

/** The durable consumers on `$MQTT_msgs`: each named after the service that pulls it, with what it holds. */
export const deviceConsumers = {
  data: [`${mqttStreamPrefix}db.>`],
  "rpc-bridge": [
    `${mqttStreamPrefix}*.shadow.update`,
    `${mqttStreamPrefix}*.shadow.get`,
    `${mqttStreamPrefix}*.event.>`,
  ],
} as const;

/**
 * Where services write to `$MQTT_msgs` to see whether it stores: each what its own consumer holds, since nothing else is stored. No device
 * has such an id.
 */
export const canarySubjects = {
  data: `${mqttStreamPrefix}db._canary`,
  "rpc-bridge": `${mqttStreamPrefix}_canary.event.stored`,
} as const satisfies Record<keyof typeof deviceConsumers, string>;

/** The one priority group of each of them: within it, one replica gets all messages (ADR 17). */
export const replicaGroup = "replicas";

/** Prefix of an MQTT topic, as a subject, inside `$MQTT_rmsgs`. */
export const mqttRetainedPrefix = "$MQTT.rmsgs.";

/** The broker's own stream of messages at QoS 2 between their publication and their release. */
export const mqttHeldStream = "$MQTT_qos2in";

/** Prefix of client id and packet number, as a subject, inside `$MQTT_qos2in`. */
export const mqttHeldPrefix = "$MQTT.qos2.in.";

/** The broker's own stream of sessions, one record each. */
export const mqttSessionStream = "$MQTT_sess";

/** Prefix of a session, as a subject, inside `$MQTT_sess`. */
export const mqttSessionPrefix = "$MQTT.sess.";
