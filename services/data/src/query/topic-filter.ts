import { topicMatcher } from "@devmesh/contracts/model/topic-match";

/** A run of topics in the order of their bytes: from `from` up to, not including, `to`. */
interface TopicRange {
  readonly from: string;
  readonly to: string;
}

/**
 * An MQTT topic filter made ready for searching: what an index can find of it and the exact rule. A topic matches
 * when it is `exact`, or is in `range` and `matches` says so.
 */
export interface TopicPattern {
  /** The one topic without wildcards that matches: the filter itself, or what stands before `/#`. */
  readonly exact: string | null;
  /** All further topics that match lie in it; null where there are none. */
  readonly range: TopicRange | null;
  /** Whether all topics in `range` match, so that `matches` need not be asked. */
  readonly rangeIsExact: boolean;
  matches(topic: string): boolean;
  /** What `matches` says, as a regular expression of Perl's kind. */
  readonly expression: string;
}

/**
 * The pattern of a filter relative to `db/<deviceId>/`. The filter has been checked (`TopicFilter`), the id too
 * (`DeviceId`).
 */
export function topicPattern(deviceId: string, filter: string): TopicPattern {
  const levels = ["db", deviceId, ...filter.split("/")];
  const wildcard = levels.findIndex((level) => level === "+" || level === "#");
  const matchesFilter = topicMatcher(levels.join("/"));
  // `db/ab` is no topic of device `ab`: only what begins `db/ab/` is.
  const matches = (topic: string) => topic.startsWith(`db/${deviceId}/`) && matchesFilter(topic);
  const expression = expressionOf(levels);
  if (wildcard === -1)
    return { exact: levels.join("/"), range: null, rangeIsExact: true, matches, expression };
  const range = topicsBelow(`${levels.slice(0, wildcard).join("/")}/`);
  const endsHere = levels[wildcard] === "#";
  const exact = endsHere && wildcard > 2 ? levels.slice(0, wildcard).join("/") : null;
  return { exact, range, rangeIsExact: endsHere, matches, expression };
}

/** `#` takes in the level above it, but for the device's: there is no topic `db/<deviceId>`. */
function expressionOf(levels: readonly string[]): string {
  const parts = levels.map((level, at) => {
    if (level === "#") return at > 2 ? "(?:/.*)?" : "/.*";
    const separator = at === 0 ? "" : "/";
    return separator + (level === "+" ? "[^/]*" : level.replace(/[!-/:-@[-`{-~]/g, "\\$&"));
  });
  return `(?s)^${parts.join("")}\\z`;
}

/** The character after `/` ends the range: no topic that begins with the prefix sorts behind it. */
function topicsBelow(prefix: string): TopicRange {
  return { from: prefix, to: `${prefix.slice(0, -1)}0` };
}
