import { checkNumbers, isKept } from "@devmesh/contracts/model/exact-numbers";
import { type Json, maxJsonDepth } from "@devmesh/contracts/model/json";
import { ViolationList } from "@devmesh/contracts/model/violation";

/** The first fault in a text; line and column count from 1. */
export interface JsonFault {
  readonly line: number;
  readonly column: number;
  /** What JSON requires there, as in "a comma or }". */
  readonly expected: string;
}

/** The result of parsing JSON. */
export type ParsedJson =
  | { readonly kind: "value"; readonly value: Json }
  | { readonly kind: "fault"; readonly fault: JsonFault };

/**
 * Parses JSON (RFC 8259) that somebody typed, without numbers that the page would send as others. Browsers report the
 * position of an error differently or not at all, so it is found here.
 */
export function parseJson(text: string): ParsedJson {
  try {
    const value = JSON.parse(text) as Json;
    const changed = new ViolationList();
    checkNumbers(text, changed);
    return changed.any ? { kind: "fault", fault: faultOf(text) } : { kind: "value", value };
  } catch {
    return { kind: "fault", fault: faultOf(text) };
  }
}

/** The message for a fault. */
export function describeFault({ line, column, expected }: JsonFault): string {
  return `Line ${line}, column ${column}: ${expected} is expected`;
}

function faultOf(text: string): JsonFault {
  const { offset, expected } = findFault(text);
  const before = text.slice(0, offset).split("\n");
  return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1, expected };
}

class Fault extends Error {
  readonly offset: number;
  readonly expected: string;

  constructor(offset: number, expected: string) {
    super(expected);
    this.offset = offset;
    this.expected = expected;
  }
}

const whitespace = /[ \t\n\r]*/y;
const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const word = /true|false|null/y;
const escaped = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;

function findFault(text: string): Fault {
  let at = 0;

  function take(pattern: RegExp): boolean {
    pattern.lastIndex = at;
    const found = pattern.exec(text)?.[0];
    if (found === undefined) return false;
    at += found.length;
    return true;
  }

  function skipTo(character: string): boolean {
    take(whitespace);
    if (text[at] !== character) return false;
    at += 1;
    return true;
  }

  function string(): void {
    for (at += 1; text[at] !== '"'; ) {
      const character = text[at];
      if (character === undefined || character === "\n") throw new Fault(at, 'a closing "');
      if (character < " ") throw new Fault(at, "an escape such as \\t in place of a control character");
      if (character !== "\\") at += 1;
      else if (!take(escaped)) throw new Fault(at, 'an escape such as \\n, \\" or \\u00e9');
    }
    at += 1;
  }

  function value(depth: number): void {
    take(whitespace);
    if (depth > maxJsonDepth) throw new Fault(at, `a nesting of at most ${maxJsonDepth} levels`);
    if (text[at] === '"') string();
    else if (skipTo("{")) list("}", () => member(depth + 1));
    else if (skipTo("[")) list("]", () => value(depth + 1));
    else if (!take(word)) keptNumber();
  }

  function keptNumber(): void {
    const from = at;
    if (!take(number)) throw new Fault(at, "a value");
    if (!isKept(text.slice(from, at))) throw new Fault(from, "a text, or a number that a double holds,");
  }

  function member(depth: number): void {
    take(whitespace);
    if (text[at] !== '"') throw new Fault(at, "a member's name in double quotes");
    string();
    if (!skipTo(":")) throw new Fault(at, "a colon");
    value(depth);
  }

  function list(end: string, item: () => void): void {
    if (skipTo(end)) return;
    for (;;) {
      item();
      if (skipTo(end)) return;
      if (!skipTo(",")) throw new Fault(at, `a comma or ${end}`);
    }
  }

  try {
    value(0);
    take(whitespace);
    return new Fault(at, "the end of the text");
  } catch (fault) {
    if (fault instanceof Fault) return fault;
    throw fault;
  }
}
