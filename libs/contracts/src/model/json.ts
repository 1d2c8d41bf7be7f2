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

/**
 * Any JSON object, passed on untouched: zod would rebuild it and silently drop a member named `__proto__`,
 * which the shadow's own check must see to refuse it.
 */
export const JsonObject = z
  .custom<JsonObject>(isJsonObject, "must be a JSON object")
  .meta({ type: "object", additionalProperties: true });

/** Any JSON value, passed on untouched. */
export const JsonValue = z.custom<Json>((value) => value !== undefined, "must be a JSON value").meta({});

/**
 * Deepest nesting of objects and arrays in JSON from outside. Far beyond what any owner takes: it keeps what is written
 * again on the way to one from exhausting the stack.
 */
export const maxJsonDepth = 200;

/** Whether objects and arrays are nested deeper than `levels`; looks no further down than that. */
export function isDeeperThan(value: Json, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((member) => isDeeperThan(member, levels - 1));
}

/**
 * Whether all numbers of a value are finite. Of those beyond the range of a double `JSON.parse` makes infinite ones,
 * and `JSON.stringify` would write null for them, which deletes in a merge patch. For a value that is not deeper than
 * {@link maxJsonDepth}.
 */
export function hasFiniteNumbers(value: Json): boolean {
  if (typeof value === "number") return Number.isFinite(value);
  return typeof value !== "object" || value === null || Object.values(value).every(hasFiniteNumbers);
}
