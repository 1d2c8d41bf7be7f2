import { z } from "zod";

/** What `JSON.parse` can give. */
export type Json = null | boolean | number | string | Json[] | JsonObject;
/** An object of JSON. A member may be called like one of `Object.prototype`: ask with `Object.hasOwn`. */
export interface JsonObject {
  [member: string]: Json;
}

/** Whether a parsed JSON value is an object (not null, not an array). */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Any JSON object, untouched: zod would drop a member named `__proto__`, which the check of the shadow must refuse. */
export const JsonObject = z
  .custom<JsonObject>(isJsonObject, "must be a JSON object")
  .meta({ type: "object", additionalProperties: true });

/** Any JSON value, passed on untouched. */
export const JsonValue = z.custom<Json>((value) => value !== undefined, "must be a JSON value").meta({});

/** Deepest nesting in JSON from outside. It bounds the stack that writing the value again takes. */
export const maxJsonDepth = 200;

/** Whether objects and arrays are nested deeper than `levels`. */
export function isDeeperThan(value: Json, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((member) => isDeeperThan(member, levels - 1));
}

/** The value of a JSON text; undefined when it is malformed. */
export function parseJson(text: string): Json | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Strings, numbers and marks of a JSON text. */
const tokens = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|-?\d[\d.eE+-]*/gs;

/** An object or array that is open, and what is read of it: the name of a member, or an index. */
interface JsonLevel {
  readonly names: Set<string> | null;
  key: string | number;
  awaitsName: boolean;
}

/** The names of members and the numbers of a valid JSON text. The keys of the open `levels` are the path to each. */
export function* namesAndNumbersOf(
  text: string,
): Generator<{ name?: string; number?: string; levels: readonly JsonLevel[] }> {
  const levels: JsonLevel[] = [];
  for (const [token] of text.matchAll(tokens)) {
    const level = levels.at(-1);
    if (token === "{") levels.push({ names: new Set(), key: "", awaitsName: true });
    else if (token === "[") levels.push({ names: null, key: 0, awaitsName: false });
    else if (token === "}" || token === "]") levels.pop();
    else if (token === ",") {
      if (typeof level?.key === "number") level.key++;
      else if (level !== undefined) level.awaitsName = true;
    } else if (level?.awaitsName === true) {
      level.key = String(JSON.parse(token));
      level.awaitsName = false;
      yield { name: level.key, levels };
    } else if (token !== ":" && !token.startsWith('"')) yield { number: token, levels };
  }
}

/** The path to the first member of a valid JSON text that its object has twice; null where none is. */
export function repeatedMember(text: string): string[] | null {
  for (const { name, levels } of namesAndNumbersOf(text)) {
    const names = levels.at(-1)?.names;
    if (name === undefined) continue;
    if (names?.has(name) === true) return levels.map(({ key }) => String(key));
    names?.add(name);
  }
  return null;
}
