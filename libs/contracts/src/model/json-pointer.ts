/** A member's name as one token of a JSON pointer, slash included (RFC 6901). */
export function pointerToken(name: PropertyKey): string {
  const text = String(name);
  return `/${isEscaped.test(text) ? text.replaceAll("~", "~0").replaceAll("/", "~1") : text}`;
}

const isEscaped = /[~/]/;

/** The member names that a JSON pointer walks through; none for the empty pointer, which is the whole document. */
export function membersOf(pointer: string): readonly string[] {
  return pointer
    .split("/")
    .slice(1)
    .map((token) => token.replaceAll("~1", "/").replaceAll("~0", "~"));
}
