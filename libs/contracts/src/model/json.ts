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

/**
 * Whether all numbers are finite. `JSON.parse` makes larger ones infinite, and `JSON.stringify` writes those as null,
 * which deletes in a merge patch. Bounded by {@link maxJsonDepth}.
 */
export function hasFiniteNumbers(value: Json): boolean {
  if (typeof value === "number") return Number.isFinite(value);
  return typeof value !== "object" || value === null || Object.values(value).every(hasFiniteNumbers);
}

/** The value of a JSON text; undefined when it is malformed. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Strings and marks of a JSON text. */
const tokens = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]/gs;

/** The path to the first member of a valid JSON text that its object has twice; null where none is. */
export function repeatedMember(text: string): string[] | null {
  const levels: { readonly names: Set<string> | null; key: string | number; awaitsName: boolean }[] = [];
  for (const [token] of text.matchAll(tokens)) {
    const level = levels.at(-1);
    if (token === "{") levels.push({ names: new Set(), key: "", awaitsName: true });
    else if (token === "[") levels.push({ names: null, key: 0, awaitsName: false });
    else if (token === "}" || token === "]") levels.pop();
    else if (level === undefined || token === ":") continue;
    else if (token === ",") {
      if (typeof level.key === "number") level.key++;
      else level.awaitsName = true;
    } else if (level.awaitsName) {
      level.key = String(JSON.parse(token));
      level.awaitsName = false;
      if (level.names?.has(level.key)) return levels.map(({ key }) => String(key));
      level.names?.add(level.key);
    }
  }
  return null;
}
