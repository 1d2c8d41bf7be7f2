import { recordRoot } from "@devmesh/contracts/model/device-id";
import { topicMatcher } from "@devmesh/contracts/model/topic-match";
import { deviceTopics } from "@devmesh/contracts/mqtt";
import { InvalidCursor } from "./data-store.ts";

/** Topics in the order of their bytes from `from` up to, not including, `to`. */
export interface TopicRange {
  readonly from: string;
  readonly to: string;
}

/** An MQTT topic filter for an index: a topic matches when it is `exact`, or is in `range` and `matches` it. */
export interface TopicPattern {
  /** The filter itself, or its part before `/#`. */
  readonly exact: string | null;
  /** Contains all further topics that match; null when there are none. */
  readonly range: TopicRange | null;
  /** Whether all topics in `range` match. */
  readonly rangeIsExact: boolean;
  matches(topic: string): boolean;
  /** `matches` as a Perl regular expression. */
  readonly expression: string;
}

/** The pattern of a valid filter (`TopicFilter`) relative to the records of a device. */
export function topicPattern(deviceId: string, filter: string): TopicPattern {
  const levels = deviceTopics.record(deviceId, filter).split("/");
  const wildcard = levels.findIndex((level) => level === "+" || level === "#");
  const matchesFilter = topicMatcher(levels.join("/"));
  const root = deviceTopics.record(deviceId, "");
  // Without a name it is no topic of a record, though `#` matches it.
  const matches = (topic: string) => topic.startsWith(root) && matchesFilter(topic);
  const expression = expressionOf(levels);
  if (wildcard === -1)
    return { exact: levels.join("/"), range: null, rangeIsExact: true, matches, expression };
  const range = topicsBelow(`${levels.slice(0, wildcard).join("/")}/`);
  const endsHere = levels[wildcard] === "#";
  const exact = endsHere && wildcard > 2 ? levels.slice(0, wildcard).join("/") : null;
  return { exact, range, rangeIsExact: endsHere, matches, expression };
}

/** Topics of any device that match one of these filters. */
export interface FollowedTopics {
  /** Whether the topic of a record matches. */
  matches(topic: string): boolean;
  /** `matches` as Perl regular expressions, one of which a topic must match. */
  readonly expressions: readonly string[];
  /** Filters without a wildcard; relative, as all here. */
  readonly names: readonly string[];
  /** Patterns of SQLite's GLOB for the other filters: they match all that those do, and more. */
  readonly globs: readonly string[];
}

/** The topics that valid filters (`TopicFilter`) relative to the records of a device match, of all devices. */
export function followedTopics(filters: readonly string[]): FollowedTopics {
  const all = filters.map((filter) => ["db", "+", ...filter.split("/")]);
  const isExact = (filter: string) => !/(^|\/)[+#]/.test(filter);
  const names = new Set(filters.filter(isExact));
  const patterns = filters.filter((filter) => !isExact(filter));
  const matchers = patterns.map((pattern) => topicMatcher(`${recordRoot}/+/${pattern}`));
  return {
    matches: (topic) => names.has(nameOf(topic)) || matchers.some((matches) => matches(topic)),
    expressions: all.map(expressionOf),
    names: [...names],
    globs: patterns.map(globOf),
  };
}

/** The topic of a record below that of its device, `db/<device id>/`. */
function nameOf(topic: string): string {
  return topic.slice(topic.indexOf("/", recordRoot.length + 1) + 1);
}

function globOf(filter: string): string {
  const levels = filter.replace(/\/?#$/, "*").split("/");
  return levels.map((level) => (level === "+" ? "*" : level.replace(/[[?]/g, "[$&]"))).join("/");
}

/** `#` also matches the level above it, except that of the device. */
function expressionOf(levels: readonly string[]): string {
  const parts = levels.map((level, at) => {
    if (level === "#") return at > 2 ? "(?:/.*)?" : "/.*";
    const separator = at === 0 ? "" : "/";
    return separator + (level === "+" ? "[^/]*" : level.replace(/[!-/:-@[-`{-~]/g, "\\$&"));
  });
  return `(?s)^${parts.join("")}\\z`;
}

/** The topics of a device's records. */
export function topicsOf(deviceId: string): TopicRange {
  return topicsBelow(deviceTopics.record(deviceId, ""));
}

/** The topics of a device, or of all for null, that follow `after`, or all. @throws InvalidCursor */
export function topicsAfter(deviceId: string | null, after: string | undefined): TopicRange {
  const all = deviceId === null ? topicsBelow(`${recordRoot}/`) : topicsOf(deviceId);
  if (after === undefined) return all;
  if (!after.startsWith(all.from) || !after.isWellFormed()) throw new InvalidCursor("no topic of the device");
  return { from: after, to: all.to };
}

/** Ends at the character after `/`. */
function topicsBelow(prefix: string): TopicRange {
  return { from: prefix, to: `${prefix.slice(0, -1)}0` };
}
