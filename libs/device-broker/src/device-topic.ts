/**
 * The levels of the MQTT topic that nats-server turned into this subject: its tokens, with `//` read as a dot and a
 * `/` at a border as an empty level. Null when a level holds a NATS wildcard, which a subject cannot tell from the
 * character: such a message is nobody's.
 */
export function topicLevels(subject: string): readonly string[] | null {
  const levels: string[] = [];
  for (const token of subject.split(".")) {
    if (token === "*" || token === ">" || token === "") return null;
    levels.push(levelOf(token));
  }
  return levels;
}

/** `a//b` is the level `a.b`; a lone `/` marks an empty level beside it and stands for no character. */
function levelOf(token: string): string {
  if (!token.includes("/")) return token;
  return token.replaceAll(/\/\/|\//g, (slashes) => (slashes === "//" ? "." : ""));
}
