import { endOfString } from "./json-scan.ts";

const closingBrace = 0x7d;

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
  if (leading !== undefined && startsWith(buffer, between, leading.ends) && closes(buffer)) {
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
