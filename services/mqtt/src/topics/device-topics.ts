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

/** What one device may use (api.md, MQTT). All characters but `/`, `+` and `#` are ordinary ones. */
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

interface TopicTemplate {
  /** Null: a parameter other than the device's id, which is `idAt`. */
  readonly fixed: readonly (string | null)[];
  readonly idAt: number;
  /** The last parameter spans one level or more. */
  readonly isOpen: boolean;
  readonly replicaAt: number;
  readonly batch: BatchKind | undefined;
  readonly maxBytes: number;
}

const templates = allTopics
  .filter(({ from }) => from === "device")
  .map((declaration: TopicDeclaration): TopicTemplate => {
    const levels = declaration.topic.split("/");
    return {
      fixed: levels.map((level) => (level.startsWith("{") ? null : level)),
      idAt: levels.indexOf("{id}"),
      isOpen: declaration.topic.endsWith("...}"),
      replicaAt: levels.indexOf("{replica}"),
      batch: declaration.batch,
      maxBytes: declaration.maxBytes ?? maxPayloadBytes,
    };
  });

const subscribe = {
  allow: dialects.flatMap((dialect) => dialect.subscribe.allow),
  deny: dialects.flatMap((dialect) => dialect.subscribe.deny),
};

/** The table of topics for one device, whose id must be a `DeviceId`. */
export function deviceTopicsOf(id: string): DeviceTopics {
  const levelsOf = (filter: string) => filter.replace("{id}", id).split("/");
  const allowed = subscribe.allow.map(levelsOf);
  // A denied `a/#` is what is below `a`, without `a` itself.
  const denied = subscribe.deny.map(levelsOf);
  const isDenied = (levels: readonly string[]) =>
    denied.some((deny) => covers(deny, levels) && levels.length >= deny.length);
  return {
    destinationOf(topic) {
      const levels = topic.split("/");
      const template = templates.find((one) => fits(one, levels, id));
      if (template === undefined) return null;
      const { batch, replicaAt, maxBytes } = template;
      if (batch !== undefined) return { to: "batch", kind: batch, maxBytes };
      return { to: "replica", replica: levels[replicaAt] ?? null, maxBytes };
    },
    maySubscribe(filter) {
      const levels = filter.split("/");
      return allowed.some((allow) => covers(allow, levels)) && !isDenied(levels);
    },
    isRefusedQuietly: (filter) => deniedFilters(id).includes(filter),
  };
}

function fits({ fixed, idAt, isOpen }: TopicTemplate, levels: readonly string[], id: string): boolean {
  if (isOpen ? levels.length < fixed.length : levels.length !== fixed.length) return false;
  if (levels[idAt] !== id) return false;
  for (let at = 0; at < fixed.length; at++) if (fixed[at] !== null && fixed[at] !== levels[at]) return false;
  return true;
}
