/** A member's name as one token of a JSON pointer, slash included (RFC 6901). */
export function pointerToken(name: PropertyKey): string {
  return `/${String(name).replaceAll("~", "~0").replaceAll("/", "~1")}`;
}
