import {
  allTopics,
  type BatchKind,
  deniedFilters,
  dialects,
  type TopicDeclaration,
} from "@devmesh/contracts/mqtt";
import { covers } from "./topic-filter.ts";

/** Where a message of a device goes: into batches of a kind, or, as a reply to a call, to one replica. */
export type Destination =
  | { readonly to: "batch"; readonly kind: BatchKind; readonly maxBytes: number }
  /** `replica` is null in the replies of firmware that does not repeat it. */
  | { readonly to: "replica"; readonly replica: string | null; readonly maxBytes: number };

/** Topics of one device (api.md, MQTT). All characters but `/`, `+` and `#` are ordinary ones. */
export interface DeviceTopics {
  /** Where a message on this topic goes; null: the device may not publish there. */
  destinationOf(topic: string): Destination | null;
  /** Whether the device may subscribe to this valid filter. */
  maySubscribe(filter: string): boolean;
  /** Whether firmware asks for this refused filter as a matter of course, so that nobody needs to know. */
  isRefusedQuietly(filter: string): boolean;
}

/** Bytes of the largest payload where the table has no bound: that of all others. */
const maxPayloadBytes = Math.max(...allTopics.map(({ maxBytes = 0 }: TopicDeclaration) => maxBytes));

/** Topics of the table that devices publish on. */
const publishable: readonly TopicDeclaration[] = allTopics.filter(({ from }) => from === "device");

/** Decides about one topic of the table; undefined: it is another one. */
type TopicRule = (topic: string) => Destination | undefined;

/** Compares texts, since this runs for each message. A topic has at most one parameter after the id. */
function ruleOf(
  { topic: template, batch, maxBytes = maxPayloadBytes }: TopicDeclaration,
  id: string,
): TopicRule {
  const destination: Destination =
    batch === undefined ? { to: "replica", replica: null, maxBytes } : { to: "batch", kind: batch, maxBytes };
  const own = template.replace("{id}", id);
  const [prefix = "", name, suffix] = own.split(/(\{[^}]+\})/);
  if (name === undefined) return (topic) => (topic === own ? destination : undefined);
  if (name.endsWith("...}")) return (topic) => (topic.startsWith(prefix) ? destination : undefined);
  return (topic) => {
    if (!topic.startsWith(prefix) || !topic.endsWith(suffix ?? "")) return undefined;
    const level = topic.slice(prefix.length, topic.length - (suffix ?? "").length);
    if (topic.length < prefix.length + (suffix ?? "").length || level.includes("/")) return undefined;
    return batch === undefined ? { to: "replica", replica: level, maxBytes } : destination;
  };
}

const subscribe = {
  allow: dialects.flatMap((dialect) => dialect.subscribe.allow),
  deny: dialects.flatMap((dialect) => dialect.subscribe.deny),
};

/** The table of topics for one device, whose id must be a `DeviceId`. */
export function deviceTopicsOf(id: string): DeviceTopics {
  const rules = publishable.map((declaration) => ruleOf(declaration, id));
  const levelsOf = (filter: string) => filter.replace("{id}", id).split("/");
  const allowed = subscribe.allow.map(levelsOf);
  // A denied `a/#` is what is below `a`, without `a` itself.
  const denied = subscribe.deny.map(levelsOf);
  const isDenied = (levels: readonly string[]) =>
    denied.some((deny) => covers(deny, levels) && levels.length >= deny.length);
  return {
    destinationOf(topic) {
      for (const rule of rules) {
        const destination = rule(topic);
        if (destination !== undefined) return destination;
      }
      return null;
    },
    maySubscribe(filter) {
      const levels = filter.split("/");
      return allowed.some((allow) => covers(allow, levels)) && !isDenied(levels);
    },
    isRefusedQuietly: (filter) => deniedFilters(id).includes(filter),
  };
}
