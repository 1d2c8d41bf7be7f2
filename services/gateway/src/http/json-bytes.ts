const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const backslash = 0x5c;
const lineFeed = 0x0a;
const closingBrace = 0x7d;

/** Scans JSON in UTF-8 without parsing it. Of bytes that are not JSON the results mean nothing; nothing here throws. */

/** Index after the quote that closes the string whose first character is at `from`. */
function endOfString(bytes: Uint8Array, from: number): number {
  let at = from;
  while (at < bytes.length && bytes[at] !== quote) at += bytes[at] === backslash ? 2 : 1;
  return at + 1;
}

// `[` and `{`, `]` and `}` differ in one bit.
const opens = (byte: number) => (byte | 0x20) === 0x7b;
const closes = (byte: number) => (byte | 0x20) === 0x7d;

/** What the limits of a body are checked on before it is parsed. */
export interface JsonOutline {
  /** Levels of nested objects and arrays. */
  readonly depth: number;
  /** Members of all objects. */
  readonly members: number;
}

export function outlineOf(bytes: Uint8Array): JsonOutline {
  let depth = 0;
  let level = 0;
  let members = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] as number;
    if (byte === quote) at = endOfString(bytes, at + 1) - 1;
    else if (byte === colon) members++;
    else if (opens(byte)) depth = Math.max(depth, ++level);
    else if (closes(byte)) level--;
  }
  return { depth, members };
}

/** Indexes of the commas between JSON values. */
function* separators(items: Uint8Array): Generator<number> {
  let level = 0;
  for (let at = 0; at < items.length; at++) {
    const byte = items[at] as number;
    if (byte === quote) at = endOfString(items, at + 1) - 1;
    else if (opens(byte)) level++;
    else if (closes(byte)) level--;
    else if (byte === comma && level === 0) yield at;
  }
}

/** Counts JSON values with commas between. */
export function countItems(items: Uint8Array): number {
  if (items.length === 0) return 0;
  let count = 1;
  for (const _ of separators(items)) count++;
  return count;
}

/** JSON values with commas between as one a line, each line closed; compact JSON has no line break. */
export function asLines(items: Uint8Array): Uint8Array {
  if (items.length === 0) return items;
  const lines = Buffer.allocUnsafe(items.length + 1);
  lines.set(items);
  for (const at of separators(items)) lines[at] = lineFeed;
  lines[items.length] = lineFeed;
  return lines;
}

/** An answer of two members, split without parsing the second (ADR 19). */
export interface Opened {
  /** The first member, a string. */
  readonly first: string;
  /** The second member as JSON. */
  readonly rest: Uint8Array;
}

/** Splits `{"<first>":"…","<rest>":…}`; parses JSON of another layout. Throws when a member is missing. */
export function openEnvelope(bytes: Uint8Array, first: string, rest: string): Opened {
  const buffer = asBuffer(bytes);
  const leading = findLeadingString(buffer, first);
  const between = `,"${rest}":`;
  if (leading !== undefined && startsWith(buffer, between, leading.ends) && endsObject(buffer)) {
    return { first: leading.value, rest: buffer.subarray(leading.ends + between.length, buffer.length - 1) };
  }
  const parsed: unknown = JSON.parse(buffer.toString("utf8"));
  return { first: stringMember(parsed, first), rest: Buffer.from(JSON.stringify(memberOf(parsed, rest))) };
}

/** The string member `name` of an object; parses the object where another member comes first. */
export function leadingString(bytes: Uint8Array, name: string): string {
  const buffer = asBuffer(bytes);
  return findLeadingString(buffer, name)?.value ?? stringMember(JSON.parse(buffer.toString("utf8")), name);
}

/** The only member of `{"<name>":…}` as JSON; parses JSON of another layout. */
export function onlyMember(bytes: Uint8Array, name: string): Uint8Array {
  const buffer = asBuffer(bytes);
  const opening = `{"${name}":`;
  if (startsWith(buffer, opening, 0) && endsObject(buffer))
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

function endsObject(buffer: Buffer): boolean {
  return buffer[buffer.length - 1] === closingBrace;
}
