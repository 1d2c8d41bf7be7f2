/** What limits are checked on before JSON is parsed. */
export interface JsonOutline {
  /** Levels of nested objects and arrays. */
  readonly depth: number;
  /** Members of all objects. */
  readonly members: number;
  /** Digits in a row, outside of strings. */
  readonly longestDigits: number;
}

const quote = 0x22;
const backslash = 0x5c;
const digit0 = 0x30;
const digit9 = 0x39;
const colon = 0x3a;

/**
 * The outline of JSON in UTF-8, in one pass over its bytes. Bytes that are not JSON have one, too; the parser refuses
 * them.
 */
export function outlineOf(bytes: Uint8Array): JsonOutline {
  let depth = 0;
  let level = 0;
  let members = 0;
  let longestDigits = 0;
  let digits = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] as number;
    if (byte >= digit0 && byte <= digit9) {
      digits++;
      if (digits > longestDigits) longestDigits = digits;
      continue;
    }
    digits = 0;
    if (byte === quote) at = endOfString(bytes, at);
    else if (byte === colon) members++;
    // `[` and `{`, `]` and `}` differ in one bit.
    else if ((byte | 0x20) === 0x7b) depth = Math.max(depth, ++level);
    else if ((byte | 0x20) === 0x7d) level--;
  }
  return { depth, members, longestDigits };
}

function endOfString(bytes: Uint8Array, start: number): number {
  let at = start + 1;
  while (at < bytes.length && bytes[at] !== quote) at += bytes[at] === backslash ? 2 : 1;
  return at;
}
