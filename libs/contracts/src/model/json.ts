import { z } from "zod";

export type Json = null | boolean | number | string | Json[] | JsonObject;
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
