/** Takes an owner's answer apart without parsing what is passed on (ADR 19). */

const quote = 0x22;
const backslash = 0x5c;
const closingBrace = 0x7d;

/** An answer of two members, taken apart. */
export interface Opened {
  /** The first member, a string. */
  readonly first: string;
  /** The second member as JSON. */
  readonly rest: Uint8Array;
}

/**
 * Opens `{"<first>":"…","<rest>":…}`. Bytes laid out otherwise, which an owner may rightly send, are parsed instead.
 * Throws when a member is missing.
 */
export function openEnvelope(bytes: Uint8Array, first: string, rest: string): Opened {
  const buffer = asBuffer(bytes);
  const leading = findLeadingString(buffer, first);
  const between = `,"${rest}":`;
  if (leading !== undefined && startsWith(buffer, between, leading.ends) && closes(buffer)) {
    return { first: leading.value, rest: buffer.subarray(leading.ends + between.length, buffer.length - 1) };
  }
  const parsed: unknown = JSON.parse(buffer.toString("utf8"));
  return { first: stringMember(parsed, first), rest: Buffer.from(JSON.stringify(memberOf(parsed, rest))) };
}

/** The string member `name` of an object, which is expected to come first; parsed where it does not. */
export function leadingString(bytes: Uint8Array, name: string): string {
  const buffer = asBuffer(bytes);
  return findLeadingString(buffer, name)?.value ?? stringMember(JSON.parse(buffer.toString("utf8")), name);
}

/** The only member of `{"<name>":…}`, as JSON; parsed where the bytes are laid out otherwise. */
export function onlyMember(bytes: Uint8Array, name: string): Uint8Array {
  const buffer = asBuffer(bytes);
  const opening = `{"${name}":`;
  if (startsWith(buffer, opening, 0) && closes(buffer))
    return buffer.subarray(opening.length, buffer.length - 1);
  return Buffer.from(JSON.stringify(memberOf(JSON.parse(buffer.toString("utf8")), name)));
}

function findLeadingString(buffer: Buffer, name: string): { value: string; ends: number } | undefined {
  const opening = `{"${name}":"`;
  if (!startsWith(buffer, opening, 0)) return undefined;
  const ends = endOfString(buffer, opening.length);
  const value: unknown = JSON.parse(buffer.toString("utf8", opening.length - 1, ends));
  return typeof value === "string" ? { value, ends } : undefined;
}

function stringMember(value: unknown, name: string): string {
  const member = memberOf(value, name);
  if (typeof member !== "string") throw new TypeError(`an answer has no string \`${name}\``);
  return member;
}

function memberOf(value: unknown, name: string): unknown {
  if (typeof value === "object" && value !== null && Object.hasOwn(value, name)) {
    return (value as Readonly<Record<string, unknown>>)[name];
  }
  throw new TypeError(`an answer has no \`${name}\``);
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** `text` is ASCII. */
function startsWith(buffer: Buffer, text: string, at: number): boolean {
  return buffer.toString("latin1", at, at + text.length) === text;
}

function closes(buffer: Buffer): boolean {
  return buffer[buffer.length - 1] === closingBrace;
}

/** Index behind the quote that closes a JSON string whose first character stands at `from`. */
function endOfString(buffer: Buffer, from: number): number {
  for (let at = from; at < buffer.length; at++) {
    if (buffer[at] === backslash) at++;
    else if (buffer[at] === quote) return at + 1;
  }
  return buffer.length;
}
