import { allTopics, dialects } from "@devmesh/contracts/mqtt";
import type { ServiceDeclaration } from "@devmesh/contracts/topology";
import {
  answersOf,
  deadLetterStream,
  deadSubject,
  discoverAll,
  discoverySubjects,
  discoveryVerbs,
  eventsNamed,
  eventsStream,
  historyStreams,
  inboxPrefix,
  methodSubject,
  outbox,
  pingOf,
  queueConsumer,
  queueStream,
  queueSubject,
} from "@devmesh/service-kit/subjects";
import type { DeviceGrant } from "./auth-callout.ts";
import {
  authCalloutSubject,
  bridgeConsumers,
  canarySubjects,
  connectionsSubject,
  type DeviceConsumer,
  deviceConnectSubject,
  deviceConsumers,
  deviceDisconnectSubject,
  deviceStoreRequests,
  mqttQos2Stream,
  mqttRetainedStream,
  mqttSessionStream,
  mqttStream,
} from "./broker-subjects.ts";
import { replySubjects, subjectFor, takenSubjects } from "./device-topic.ts";

/** What one user of the broker may publish and subscribe; `deny` wins. */
export interface UserPermissions {
  readonly publish: { readonly allow: readonly string[]; readonly deny: readonly string[] };
  /** `SUBJECT QUEUE` allows the subject in that queue group only. */
  readonly subscribe: { readonly allow: readonly string[]; readonly deny: readonly string[] };
  /** May answer, once, on the reply subject of what it receives. */
  readonly responds: boolean;
  /** How it may connect, in the broker's words. */
  readonly connectionTypes: readonly ("STANDARD" | "MQTT")[];
}

/** The permissions of a service in each account it has a user in. */
export interface ServicePermissions {
  readonly mesh: UserPermissions;
  readonly devices?: UserPermissions;
}

/**
 * Permissions of a human in account MESH: discovery (`$SRV`, ADR 5), with the inbox of any NATS client. Inboxes of
 * services have another prefix.
 */
export const operatorPermissions: UserPermissions = {
  publish: { allow: discoveryVerbs.flatMap((verb) => [`$SRV.${verb}`, `$SRV.${verb}.>`]), deny: [] },
  subscribe: { allow: ["_INBOX.>"], deny: [] },
  responds: false,
  connectionTypes: ["STANDARD"],
};

/**
 * What one device may use (api.md, MQTT). QoS 1 and 2, retained messages and persistent sessions need no permission for
 * the broker's own `$MQTT` subjects. `deviceId` must have passed its pattern.
 */
export function devicePermissions(deviceId: string): Pick<DeviceGrant, "publish" | "subscribe"> {
  const own = allTopics.filter(({ from }) => from === "device");
  // `ID/#` is two subscriptions to the broker: `ID` and `ID.>`. To refuse one is enough.
  const below = (filter: string) => subjectFor(filter, deviceId).replace(/#$/, ">");
  const withParent = (filter: string) =>
    filter.endsWith("/#") ? [below(filter.slice(0, -"/#".length)), below(filter)] : [below(filter)];
  return {
    publish: { allow: own.map(({ topic }) => subjectFor(topic, deviceId)), deny: [] },
    subscribe: {
      allow: dialects.flatMap(({ subscribe }) => subscribe.allow.flatMap(withParent)),
      deny: dialects.flatMap(({ subscribe }) => subscribe.deny.map(below)),
    },
  };
}

/** The services of a mesh by name, as `libs/contracts` declares them. */
export type MeshDeclaration = Readonly<Record<string, ServiceDeclaration>>;

/**
 * Exactly what each service declares, in subjects (ADR 2): nothing here is granted to all but discovery and its inbox.
 */
export function permissionsOf(mesh: MeshDeclaration): ReadonlyMap<string, ServicePermissions> {
  const ofService = ([name, declaration]: [string, ServiceDeclaration]) => {
    const devices = devicesPermissions(name, declaration);
    const inMesh = meshPermissions(name, declaration, callersOf(declaration, mesh));
    return [name, { mesh: inMesh, ...(devices === null ? {} : { devices }) }] as const;
  };
  return new Map(Object.entries(mesh).map(ofService));
}

function callersOf({ serves }: ServiceDeclaration, mesh: MeshDeclaration): string[] {
  return Object.entries(mesh)
    .filter(([, { calls }]) => calls.some(({ contract }) => contract.service === serves?.service))
    .map(([caller]) => caller);
}

function meshPermissions(
  name: string,
  declaration: ServiceDeclaration,
  callers: readonly string[],
): UserPermissions {
  const { serves, calls, publishes, subscribes, follows, produces, consumes, rights } = declaration;
  const subscribe = [`${inboxPrefix(name)}.>`];
  const publish: string[] = [];

  for (const verb of discoveryVerbs) subscribe.push(...discoverySubjects(verb, name, "ID").map(anyReplica));
  if (serves !== null) {
    for (const method of Object.keys(serves.methods))
      subscribe.push(`${methodSubject(serves, method)} ${name}`);
    publish.push(...callers.map((caller) => answersOf(serves.service, caller)));
  }
  for (const { contract, methods } of calls) {
    publish.push(...methods.map((method) => methodSubject(contract, method)), pingOf(contract.service));
  }
  if (publishes !== null) {
    const declared = Object.entries(publishes.events);
    publish.push(...declared.map(([event, keeping]) => eventsNamed(publishes.service, event, keeping)));
    if (declared.some(([, { live }]) => live === undefined)) publish.push(...streamUpkeep(eventsStream));
  }
  for (const { events, names } of subscribes) {
    subscribe.push(...names.map((event) => eventsNamed(events.service, event, events.events[event] ?? {})));
  }
  if (follows.length > 0) publish.push(...eventReading);
  for (const queue of produces)
    publish.push(queueSubject(queue.name), ...streamUpkeep(queueStream(queue.name)));
  for (const queue of consumes) publish.push(...queueConsumption(queue.name));
  if (rights.includes("auth_callout")) {
    subscribe.push(`${authCalloutSubject} ${name}`);
    publish.push(...Object.keys(deviceStoreRequests));
  }
  if (rights.includes("discovery")) publish.push(discoverAll, "$SRV.PING.*.*");
  if (rights.includes("history"))
    for (const { stream, subjects } of Object.values(historyStreams))
      publish.push(subjects, ...streamUpkeep(stream), `$JS.API.DIRECT.GET.${stream}`);
  if (rights.includes("event_outbox")) publish.push(...eventOutbox);
  if (rights.includes("device_connections")) {
    subscribe.push(deviceConnectSubject, deviceDisconnectSubject);
    publish.push(connectionsSubject, "$SYS.REQ.SERVER.*.KICK");
  }
  return {
    publish: { allow: distinct(publish), deny: [] },
    subscribe: { allow: distinct(subscribe), deny: [] },
    responds: true,
    connectionTypes: ["STANDARD"],
  };
}

/** `$SRV.PING.NAME.ID` as `$SRV.PING.NAME.*`: ids are made by the replicas themselves. */
function anyReplica(subject: string): string {
  return subject.replace(/\.ID$/, ".*");
}

function streamUpkeep(stream: string): string[] {
  return ["INFO", "CREATE", "UPDATE"].map((verb) => `$JS.API.STREAM.${verb}.${stream}`);
}

/** The broker does not check the filter of a consumer: this permits reading all events. */
const eventReading = [
  `$JS.API.STREAM.INFO.${eventsStream}`,
  // A consumer of several filters is created on this subject, without its name.
  `$JS.API.CONSUMER.CREATE.${eventsStream}`,
  ...["MSG.NEXT", "DELETE"].map((verb) => `$JS.API.CONSUMER.${verb}.${eventsStream}.*`),
];

const eventOutbox = [
  ...streamUpkeep(eventsStream),
  ...streamUpkeep(outbox.stream),
  `$JS.API.STREAM.DELETE.${outbox.stream}`,
  // Its filters are not checked: this permits reading all events.
  ...["DURABLE.CREATE", "INFO", "MSG.NEXT", "DELETE"].map(
    (verb) => `$JS.API.CONSUMER.${verb}.${outbox.stream}.*`,
  ),
  `$JS.API.CONSUMER.LIST.${outbox.stream}`,
  `$JS.API.STREAM.MSG.GET.${outbox.stream}`,
  `$JS.ACK.${outbox.stream}.>`,
  outbox.allSubjects,
  ...streamUpkeep(outbox.dead),
  ...["MSG.GET", "MSG.DELETE", "PURGE"].map((verb) => `$JS.API.STREAM.${verb}.${outbox.dead}`),
  outbox.allDead,
];

function queueConsumption(queue: string): string[] {
  const jobs = queueStream(queue);
  const dead = deadLetterStream(queue);
  return [
    ...streamUpkeep(jobs),
    ...streamUpkeep(dead),
    ...["CREATE", "INFO", "MSG.NEXT"].map((verb) => `$JS.API.CONSUMER.${verb}.${jobs}.${queueConsumer}`),
    `$JS.ACK.${jobs}.${queueConsumer}.>`,
    deadSubject(queue),
    // A dead letter that is retried is published again, then deleted.
    queueSubject(queue),
    `$JS.API.STREAM.MSG.GET.${dead}`,
    `$JS.API.STREAM.MSG.DELETE.${dead}`,
  ];
}

function devicesPermissions(name: string, { rights }: ServiceDeclaration): UserPermissions | null {
  const topics = rights.includes("device_topics");
  const data = rights.includes("device_data");
  if (!topics && !data) return null;
  const subscribe = [`${inboxPrefix(name)}.>`];
  const publish: string[] = [`$JS.API.STREAM.INFO.${mqttStream}`];
  const deny: string[] = [];
  if (data) {
    publish.push(...pulling("data"), canarySubjects.data);
    subscribe.push(...takenSubjects("data").map((subject) => `${subject} ${name}`));
  }
  if (topics) {
    publish.push(...bridgeConsumers.flatMap(pulling), ...provisioning(), toDevices);
    deny.push(...brokerInternals);
    subscribe.push(...takenSubjects("rpc-bridge").map((subject) => `${subject} ${name}`), ...replySubjects);
  }
  return {
    publish: { allow: distinct(publish), deny },
    subscribe: { allow: distinct(subscribe), deny: [] },
    responds: false,
    connectionTypes: topics ? ["STANDARD", "MQTT"] : ["STANDARD"],
  };
}

function pulling(durable: DeviceConsumer): string[] {
  return [
    `$JS.API.CONSUMER.MSG.NEXT.${mqttStream}.${durable}`,
    `$JS.API.CONSUMER.UNPIN.${mqttStream}.${durable}`,
    `$JS.API.CONSUMER.INFO.${mqttStream}.${durable}`,
    `$JS.API.CONSUMER.DURABLE.CREATE.${mqttStream}.${durable}`,
    `$JS.API.CONSUMER.RESET.${mqttStream}.${durable}`,
    `$JS.ACK.${mqttStream}.${durable}.>`,
  ];
}

function provisioning(): string[] {
  return [
    `$JS.API.STREAM.UPDATE.${mqttStream}`,
    `$JS.API.STREAM.INFO.${mqttRetainedStream}`,
    `$JS.API.STREAM.MSG.GET.${mqttRetainedStream}`,
    // To keep room in the stream: what only sessions wait for is found and dropped.
    `$JS.API.STREAM.MSG.GET.${mqttStream}`,
    `$JS.API.STREAM.PURGE.${mqttStream}`,
    `$JS.API.STREAM.MSG.GET.${mqttQos2Stream}`,
    // To leave nothing of a deleted device.
    `$JS.API.STREAM.INFO.${mqttQos2Stream}`,
    `$JS.API.STREAM.PURGE.${mqttQos2Stream}`,
    `$JS.API.STREAM.MSG.GET.${mqttSessionStream}`,
    ...Object.keys(deviceConsumers).map((durable) => `$JS.API.CONSUMER.INFO.${mqttStream}.${durable}`),
  ];
}

/**
 * Calls, shadows, and clearing the retained messages of a deleted device, which may be on any topic. `brokerInternals`
 * takes back the rest.
 */
const toDevices = "*.>";

/** What `*.>` would permit besides: system requests, sessions, inboxes of other users, other JetStream verbs. */
const brokerInternals = [
  "$SYS.>",
  "$MQTT.>",
  "$JSC.>",
  "$JS.FC.>",
  "_INBOX.>",
  `${inboxPrefix("data")}.>`,
  `$JS.ACK.${mqttStream}.data.>`,
  `$JS.API.CONSUMER.MSG.NEXT.${mqttStream}.data`,
  `$JS.API.CONSUMER.UNPIN.${mqttStream}.data`,
  `$JS.API.CONSUMER.DURABLE.CREATE.${mqttStream}.data`,
  `$JS.API.CONSUMER.RESET.${mqttStream}.data`,
  "$JS.API.INFO",
  "$JS.API.ACCOUNT.>",
  "$JS.API.DIRECT.>",
  "$JS.API.SERVER.>",
  "$JS.API.META.>",
  ...[
    "CREATE",
    "DELETE",
    "LIST",
    "NAMES",
    "SNAPSHOT",
    "RESTORE",
    "MSG.DELETE",
    "PEER",
    "LEADER",
    "TEMPLATE",
  ].flatMap((verb) => [`$JS.API.STREAM.${verb}`, `$JS.API.STREAM.${verb}.>`]),
  ...["CREATE", "DELETE", "LIST", "NAMES", "LEADER", "PAUSE"].map((verb) => `$JS.API.CONSUMER.${verb}.>`),
  ...[mqttSessionStream, mqttRetainedStream, "$MQTT_out"].map((stream) => `$JS.API.STREAM.PURGE.${stream}`),
  "$JS.API.STREAM.MSG.GET.$MQTT_out",
  ...[mqttSessionStream, mqttRetainedStream, mqttQos2Stream, "$MQTT_out"].flatMap((stream) => [
    `$JS.API.STREAM.UPDATE.${stream}`,
    `$JS.API.CONSUMER.DURABLE.CREATE.${stream}.>`,
    `$JS.API.CONSUMER.RESET.${stream}.>`,
    `$JS.API.CONSUMER.MSG.NEXT.${stream}.>`,
    `$JS.API.CONSUMER.UNPIN.${stream}.>`,
    `$JS.ACK.${stream}.>`,
  ]),
];

function distinct(subjects: readonly string[]): string[] {
  return [...new Set(subjects)];
}
