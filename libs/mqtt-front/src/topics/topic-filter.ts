/** Most bytes of a topic filter, in UTF-8. */
export const maxFilterBytes = 4_096;

/** Begins a shared subscription of MQTT 5. */
const sharedPrefix = "$share/";

/** Whether a topic filter is a shared subscription, which no device may have. */
export function isShared(filter: string): boolean {
  return filter.startsWith(sharedPrefix) || filter === "$share";
}

/** Whether each wildcard of a topic filter is a whole level, and `#` the last one. */
export function isValidFilter(filter: string): boolean {
  if (filter === "" || Buffer.byteLength(filter) > maxFilterBytes) return false;
  const levels = filter.split("/");
  return levels.every((level, at) => {
    if (level === "+") return true;
    if (level === "#") return at === levels.length - 1;
    return !level.includes("+") && !level.includes("#");
  });
}

/**
 * Whether `filter`, in levels, selects a topic, in levels. `a/#` selects `a`, too; a wildcard in the first level
 * selects no topic that begins with `$`.
 */
export function matches(filter: readonly string[], topic: readonly string[]): boolean {
  if (topic[0]?.startsWith("$") && filter[0] !== topic[0]) return false;
  for (let at = 0; at < filter.length; at++) {
    const level = filter[at];
    if (level === "#") return topic.length >= at;
    if (at >= topic.length || (level !== "+" && level !== topic[at])) return false;
  }
  return filter.length === topic.length;
}

/** Whether all topics that `inner` selects are selected by `outer`; both in levels. */
export function covers(outer: readonly string[], inner: readonly string[]): boolean {
  for (let at = 0; at < outer.length; at++) {
    const level = outer[at];
    if (level === "#") return inner.length >= at;
    const other = inner[at];
    if (other === undefined || other === "#" || (level !== "+" && level !== other)) return false;
  }
  return outer.length === inner.length;
}
