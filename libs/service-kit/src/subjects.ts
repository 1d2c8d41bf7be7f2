import type { ContractDeclaration, EventDeclaration } from "@devmesh/contracts/contract";

/** One token of a subject, as ADR-6 of nats-architecture-and-design defines its restricted term. */
const restrictedTerm = /^[A-Za-z0-9_-]{1,128}$/;

/**
 * Returns `value` as a token of a subject. Throws a `TypeError` when it holds a dot, a wildcard or a blank, or is
 * empty.
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

/** Subjects of the stream `EVENTS`. */
export const allEvents = "event.>";

/** Whether events are stored for an hour, or live. */
type Keeping = Pick<EventDeclaration, "live">;

/** Subject of one event; `key` is the id of its object, such as a device. */
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

/** All replicas of a service answer it, or that one. */
export function pingOf(service: string, replica?: string): string {
  const ping = `$SRV.PING.${subjectToken(service, "service")}`;
  return replica === undefined ? ping : `${ping}.${subjectToken(replica, "service id")}`;
}

/** All replicas of all services answer it with their counts. */
export const discoverAll = "$SRV.STATS";

/** The three subjects on which one replica answers `verb`: all services, all replicas of it, itself. */
export function discoverySubjects(verb: DiscoveryVerb, service: string, id: string): readonly string[] {
  const name = subjectToken(service, "service");
  return [`$SRV.${verb}`, `$SRV.${verb}.${name}`, `$SRV.${verb}.${name}.${subjectToken(id, "service id")}`];
}

/**
 * A service's user in account MESH. nats-server tries its own users before the auth callout, so the name has a dot,
 * which no device id has.
 */
export function meshUser(service: string): string {
  return `${service}.mesh`;
}

/** Below this, and nowhere else, a user of the broker receives replies. */
export function inboxPrefix(service: string): string {
  return `_INBOX_${subjectToken(service, "service")}`;
}

/**
 * Where a service receives the answers of another one, at each of its replicas and for each of its calls below it. Only
 * the service that answers may publish there: it answers over any of its connections (ADR 27).
 */
export function answersOf(answering: string, calling: string): string {
  return `${inboxPrefix(calling)}.${subjectToken(answering, "service")}.>`;
}

/**
 * Below the inbox of a caller: a replica of the service that answers it has a new connection. What was on its way over
 * the former one is lost.
 */
export function reconnectedSubject(inbox: string, answering: string): string {
  return `${inbox}.${answering}.reconnected`;
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

/** Streams of what the gateways keep together, and their subjects. */
export const historyStreams = {
  /** The course of the mesh: a message each minute. */
  mesh: { stream: "HISTORY", subjects: "history.mesh" },
  /** The last changes that requests made, a subject each: kind of key, gateway, place. */
  changes: { stream: "CHANGES", subjects: "changes.*.*.*" },
} as const;

/** Name of the stream that holds the events of the last hour. */
export const eventsStream = "EVENTS";

/** The stream of what waits for webhooks, that of what was given up, and their subjects. */
export const outbox = {
  stream: "WEBHOOKS",
  dead: "DEAD_WEBHOOKS",
  /** Messages for one webhook alone. */
  subject: (id: string): string => `queue.webhooks.${subjectToken(id, "webhook")}`,
  allSubjects: "queue.webhooks.*",
  /** What a webhook gave up, about a device; `-` is no device's id. */
  deadSubject: (id: string, about: string | null): string =>
    `dead.webhooks.${subjectToken(id, "webhook")}.${about === null ? "-" : subjectToken(about, "device")}`,
  allDead: "dead.webhooks.*.*",
  deadOf: (of: { readonly id: string } | { readonly about: string }): string =>
    "id" in of
      ? `dead.webhooks.${subjectToken(of.id, "webhook")}.*`
      : `dead.webhooks.*.${subjectToken(of.about, "device")}`,
} as const;
