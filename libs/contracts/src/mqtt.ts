import { z } from "zod";
import { FunctionName } from "./model/acl.ts";
import { recordRoot } from "./model/device-id.ts";
import { type Json, JsonObject, JsonValue } from "./model/json.ts";
import { ShadowDelta, ShadowPatch, shadowExample } from "./model/shadow.ts";

/** Kinds of batches: what one consumer takes. */
export const batchKinds = ["records", "shadow", "events"] as const;
export type BatchKind = (typeof batchKinds)[number];

/** A topic of devices (api.md, MQTT), or several that differ in their parameters. */
export interface TopicDeclaration {
  /**
   * Levels in braces are parameters: `{id}` is the device; `{name...}`, always the last, spans one level or more and
   * every other one level.
   */
  readonly topic: string;
  /** Who publishes. A device may publish on the topics with `device` and on no others. */
  readonly from: "device" | "mesh";
  /** At which the mesh publishes, or, as `any`, takes what a device publishes. */
  readonly qos: 0 | 1 | "any";
  /** The broker sends the last message to each new subscription. */
  readonly retained?: true;
  /** The service that takes what devices publish here; the broker keeps QoS 1 and 2 for it. */
  readonly takenBy?: "data" | "rpc-bridge";
  /** The batches that carry it there from the MQTT front; absent for replies to calls. */
  readonly batch?: BatchKind;
  /** Null: any bytes. */
  readonly payload: z.ZodType | null;
  /** Size of the largest payload that is taken, in bytes. */
  readonly maxBytes?: number;
  /** Most characters of `{name...}`. */
  readonly maxNameLength?: number;
  readonly summary: string;
  readonly examples: readonly Json[];
}

/** The topics of one kind of devices. */
export interface Dialect {
  readonly topics: Readonly<Record<string, TopicDeclaration>>;
  /** Filters, with what is within them, that a device may subscribe to; `deny` wins. */
  readonly subscribe: { readonly allow: readonly string[]; readonly deny: readonly string[] };
}

/** Bytes of the largest payload of a device that is stored or handled: it fits into one message of the mesh as JSON. */
const maxPayloadBytes = 256 * 1024;

/** What Mongoose OS adds to the `src` of a call for the topic of its reply. */
const replySuffix = "/rpc";

/** `src` of a call: a topic of the called device at one replica. */
const replySource = "{id}/r/{replica}";

/** Any string of up to 64 bytes, as AWS IoT has it. */
export const ClientToken = z
  .string()
  .refine((token) => new TextEncoder().encode(token).byteLength <= 64)
  .describe("Any text of up to 64 bytes; the answer repeats it.");

/** A call of a function of the device. */
export const CallFrame = z.object({
  id: z.int().describe("A random integer of 31 bits: firmware parses it as a number."),
  src: z.string().describe("The device answers on `<src>/rpc`."),
  method: FunctionName,
  params: JsonValue.optional().describe(
    "Absent where the caller gave none; `{}` and `[]` are passed on as they are.",
  ),
});
export type CallFrame = z.infer<typeof CallFrame>;

const callId = z.int().describe("That of the call.");

/** The answer of a device to a call. */
const CallReply = z.union([
  z
    .object({ id: callId, result: JsonValue.describe("What the caller gets.") })
    .describe("The call succeeded."),
  z
    .object({
      id: callId,
      error: z
        .object({
          code: z.int().describe("The device's own; 404 and -32601 mean that it has no such function."),
          message: z.string().optional().describe("For people; 1,024 characters are passed on."),
        })
        .describe("Why."),
    })
    .describe("The call failed."),
]);

/** A change of the shadow that a device asks for. */
const ShadowUpdate = z.object({
  state: ShadowPatch.shape.state.unwrap(),
  version: ShadowPatch.shape.version,
  clientToken: ClientToken.optional(),
});

const about = {
  version: z.int().describe("Version number of the shadow."),
  timestamp: z.int().describe("Unix milliseconds of the last accepted write."),
  clientToken: ClientToken.optional(),
};

const ShadowUpdateAccepted = z.object({ state: JsonObject.describe("What was asked for."), ...about });

/** Why an update was refused. */
export const ShadowUpdateRejected = z.object({
  code: z.int().describe("HTTP status code of the same failure in the REST API; 429 for too many."),
  message: z.string().describe("For people."),
  clientToken: ClientToken.optional(),
});
export type ShadowUpdateRejected = z.infer<typeof ShadowUpdateRejected>;

const ShadowGet = z.object({ clientToken: ClientToken.optional() }).describe("May also be empty.");

const ShadowState = z.object({ state: JsonObject.describe("`desired`, `reported` and `delta`."), ...about });

const { state, metadata, version, timestamp } = shadowExample;
const reported = { reported: { on: true } };

/** The topics below the id of a device, and those of its records. */
export const native = {
  topics: {
    call: {
      topic: `{id}${replySuffix}`,
      from: "mesh",
      qos: 0,
      payload: CallFrame,
      summary: "A call of a function of the device.",
      examples: [{ id: 7, src: "pump-1/r/x4Tn8", method: "sum", params: [2, 3] }],
    },
    reply: {
      topic: `${replySource}${replySuffix}`,
      from: "device",
      qos: "any",
      payload: CallReply,
      summary: "The answer to a call, on `<src>/rpc`. It counts only on a topic of the called device.",
      examples: [
        { id: 7, result: 5 },
        { id: 7, error: { code: 500, message: "no water" } },
      ],
    },
    replyWithoutSource: {
      topic: `{id}/r${replySuffix}`,
      from: "device",
      qos: "any",
      payload: CallReply,
      summary: "The same, of mDash firmware.",
      examples: [{ id: 7, result: 5 }],
    },
    shadowUpdate: {
      topic: "{id}/shadow/update",
      from: "device",
      qos: "any",
      takenBy: "rpc-bridge",
      batch: "shadow",
      payload: ShadowUpdate,
      maxBytes: maxPayloadBytes,
      summary: "A change of the shadow: each section is a merge patch (RFC 7396), null deletes.",
      examples: [{ state: reported }, { state: reported, version: 8, clientToken: "a1" }],
    },
    shadowUpdateAccepted: {
      topic: "{id}/shadow/update/accepted",
      from: "mesh",
      qos: 0,
      payload: ShadowUpdateAccepted,
      summary: "The answer to an update that was applied.",
      examples: [{ state: reported, version: 9, timestamp, clientToken: "a1" }],
    },
    shadowUpdateRejected: {
      topic: "{id}/shadow/update/rejected",
      from: "mesh",
      qos: 0,
      payload: ShadowUpdateRejected,
      summary: "The answer to an update that was refused.",
      examples: [{ code: 409, message: "the shadow's version is 9", clientToken: "a1" }],
    },
    shadowGet: {
      topic: "{id}/shadow/get",
      from: "device",
      qos: "any",
      takenBy: "rpc-bridge",
      batch: "shadow",
      payload: ShadowGet,
      maxBytes: maxPayloadBytes,
      summary: "Asks for the shadow.",
      examples: [{}, { clientToken: "a2" }],
    },
    shadow: {
      topic: "{id}/shadow",
      from: "mesh",
      qos: 0,
      payload: ShadowState,
      summary: "The shadow, as the answer to a get.",
      examples: [{ state, version, timestamp, clientToken: "a2" }],
    },
    shadowDelta: {
      topic: "{id}/shadow/delta",
      from: "mesh",
      qos: 1,
      retained: true,
      payload: ShadowDelta.partial({ metadata: true }),
      summary: "What differs between desired and reported: on each change and on each subscription.",
      examples: [{ state: state.delta, metadata: metadata.desired, version, timestamp }],
    },
    record: {
      topic: `${recordRoot}/{id}/{name...}`,
      from: "device",
      qos: "any",
      takenBy: "data",
      batch: "records",
      payload: null,
      maxBytes: maxPayloadBytes,
      summary: "A record, of any bytes: it is stored.",
      examples: [{ celsius: 21.5 }],
    },
    event: {
      topic: "{id}/event/{name...}",
      from: "device",
      qos: "any",
      takenBy: "rpc-bridge",
      batch: "events",
      payload: JsonValue,
      maxBytes: maxPayloadBytes,
      maxNameLength: 256,
      summary: "An event; in the notification stream it is `rpc.out.<name>`.",
      examples: [{ button: 2 }],
    },
  },
  // Mongoose OS firmware subscribes `ID/rpc/#` beside `ID/rpc` and would get each call twice.
  subscribe: { allow: ["{id}/#"], deny: [`{id}${replySuffix}/#`] },
} as const satisfies Dialect;

/** All dialects; a device may use the topics of each. Broker permissions and consumers follow from it. */
export const dialects: readonly Dialect[] = [native];

/** All topics, of every dialect, with their names. */
export const allTopics = dialects.flatMap(({ topics }) =>
  Object.entries(topics).map(([name, topic]) => ({ name, ...topic })),
);

/** Filters within its own topics that a device may not subscribe to. */
export function deniedFilters(id: string): string[] {
  return dialects.flatMap(({ subscribe }) => subscribe.deny.map((filter) => filter.replace("{id}", id)));
}

/** What a device may do instead of using a topic that it may not use, for its diagnostics; null for other entries. */
export function allowedTopics(id: string, diagnosis: string): string | null {
  if (diagnosis === "subscription_refused")
    return `subscribe below \`${id}/\`, except \`${deniedFilters(id).join("`, `")}\``;
  if (diagnosis !== "publication_refused") return null;
  const below = deviceTopics.record(id, "");
  return `publish below \`${below}\`, such as \`${below}temperature\`, or an event below \`${deviceTopics.event(id, "")}\``;
}

/** The bounds of one device or connection that are no setting (api.md, MQTT). */
export const mqttBounds = {
  /** Subscriptions of a connection; a filter that ends in `#` counts twice. */
  subscriptions: 1_000,
  /** Subscriptions of a session at QoS 1 or 2. */
  acknowledgedSubscriptions: 16,
  openConnections: 300,
  persistentSessions: 10,
  retainedMessages: 10_000,
  /** On one topic for each call in flight. */
  repliesPerCall: 100,
  /** In UTF-8. */
  recordTopicBytes: 4_096,
} as const;

/** What a topic takes after the device's id: its second parameter, if it has one. */
type Levels<Template extends string> = Template extends `${string}{${string}}${string}{${string}}${string}`
  ? [id: string, second: string]
  : [id: string];

type TopicBuilders<D extends Dialect> = {
  readonly [Name in keyof D["topics"]]: (...levels: Levels<D["topics"][Name]["topic"]>) => string;
};

/** Builds the topics of the table by their names. An id must be a `DeviceId`. */
export const deviceTopics = buildersOf(native);

function buildersOf<const D extends Dialect>({ topics }: D): TopicBuilders<D> {
  const builders = Object.entries(topics).map(([name, { topic }]) => [name, builderOf(topic)]);
  return Object.fromEntries(builders) as TopicBuilders<D>;
}

function builderOf(template: string): (id: string, second?: string) => string {
  const [before = "", between = "", after] = template.split(/\{[^}]+\}/);
  if (after === undefined) return (id) => before + id + between;
  return (id, second = "") => before + id + between + second + after;
}

/** The `src` of a call to a device by one replica. */
export const callSource = builderOf(replySource);

/** Where Mongoose OS answers a call. */
export function replyTopicOf(src: string): string {
  return src + replySuffix;
}

/** Names of the topics of a dialect that one service takes. */
type TakenTopic<D extends Dialect, Service> = {
  [Name in keyof D["topics"]]: D["topics"][Name] extends { readonly takenBy: Service } ? Name : never;
}[keyof D["topics"]];

/** What a topic says. */
interface ParsedTopic<Name> {
  readonly kind: Name;
  readonly deviceId: string;
  /** Of the parameter `{name...}`; empty without one. */
  readonly name: string;
}

/**
 * A parser of the levels of topics that one service takes; null for any other topic. The device's id and the levels of
 * the name are as they came: check them.
 */
export function topicParser<const D extends Dialect, const Service extends "data" | "rpc-bridge">(
  { topics }: D,
  service: Service,
): (levels: readonly string[]) => ParsedTopic<TakenTopic<D, Service>> | null {
  const taken = Object.entries(topics).filter(([, { takenBy }]) => takenBy === service);
  const templates = taken.map(([kind, { topic }]) => {
    const levels = topic.split("/");
    const nameAt = levels.findIndex((level) => level.endsWith("...}"));
    return {
      kind: kind as TakenTopic<D, Service>,
      idAt: levels.indexOf("{id}"),
      nameAt,
      // Null: a parameter.
      fixed: levels.map((level) => (level.startsWith("{") ? null : level)),
    };
  });
  return (levels) => {
    for (const { kind, idAt, nameAt, fixed } of templates) {
      if (nameAt < 0 ? levels.length !== fixed.length : levels.length < fixed.length) continue;
      if (!isFixed(fixed, levels)) continue;
      return { kind, deviceId: levels[idAt] ?? "", name: nameAt < 0 ? "" : levels.slice(nameAt).join("/") };
    }
    return null;
  };
}

/** A loop, since this is done for each message. */
function isFixed(fixed: readonly (string | null)[], levels: readonly string[]): boolean {
  for (let at = 0; at < fixed.length; at++) if (fixed[at] !== null && fixed[at] !== levels[at]) return false;
  return true;
}

/** What follows the device's id and a colon in a client id. */
export const clientIdSuffix = /^[A-Za-z0-9_:-]{1,64}$/;

/** The form of the client ids that the broker makes. A client may send one of this form, too. */
export const generatedClientId = /^[0-9A-Za-z]{22}$/;

/** Whether a client id is the device's own, may be generated by the broker, or is another device's. */
export function originOfClientId(clientId: string, deviceId: string): "own" | "generated" | "foreign" {
  if (clientId === deviceId) return "own";
  if (clientId.startsWith(`${deviceId}:`))
    return clientIdSuffix.test(clientId.slice(deviceId.length + 1)) ? "own" : "foreign";
  return generatedClientId.test(clientId) ? "generated" : "foreign";
}

/** The device that a client id names, unless the broker generated it. */
export function deviceOfClientId(clientId: string): string {
  return clientId.split(":", 1)[0] ?? "";
}
