/**
 * The levels of the MQTT topic of a subject: `//` is a dot, and a single `/` marks an empty level. Null when a level
 * holds a NATS wildcard, which cannot be distinguished from the character.
 */
export function topicLevels(subject: string): readonly string[] | null {
  const levels: string[] = [];
  for (const token of subject.split(".")) {
    if (token === "*" || token === ">" || token === "") return null;
    levels.push(levelOf(token));
  }
  return levels;
}

/** `a//b` is the level `a.b`; a single `/` marks an empty level beside it. */
function levelOf(token: string): string {
  if (!token.includes("/")) return token;
  return token.replaceAll(/\/\/|\//g, (slashes) => (slashes === "//" ? "." : ""));
}
