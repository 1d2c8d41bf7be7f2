/** Returns a matcher of MQTT topics for this filter; `temp/#` includes `temp` (MQTT 3.1.1, 4.7). */
export function topicMatcher(filter: string): (topic: string) => boolean {
  const wanted = filter.split("/");
  return (topic) => {
    const actual = topic.split("/");
    for (const [at, level] of wanted.entries()) {
      if (level === "#") return actual.length >= at;
      const there = actual[at];
      if (there === undefined || (level !== "+" && level !== there)) return false;
    }
    return actual.length === wanted.length;
  };
}
