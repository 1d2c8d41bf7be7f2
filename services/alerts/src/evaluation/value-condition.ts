import type { DataRecord } from "@devmesh/contracts/model/data-record";
import { isJsonObject, type Json, parseJson } from "@devmesh/contracts/model/json";
import type { ValueComparison } from "@devmesh/contracts/model/rule";

/** The message of a record; undefined where it is not JSON. */
export function documentOf({
  message,
  encoding,
}: Pick<DataRecord, "message" | "encoding">): Json | undefined {
  return encoding === undefined ? parseJson(message) : undefined;
}

/** The value at a JSON pointer, whose members these are; undefined where there is none. */
export function valueAt(document: Json | undefined, members: readonly string[]): Json | undefined {
  let value = document;
  for (const name of members) {
    if (Array.isArray(value)) value = /^(0|[1-9]\d*)$/.test(name) ? value[Number(name)] : undefined;
    else value = isJsonObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
  }
  return value;
}

/**
 * Whether a condition holds for a value; null where it cannot compare the two, which changes nothing. `holdsNow`
 * applies `clear_at`.
 */
export function holdsFor(
  { is, than, clear_at }: ValueComparison,
  value: Json,
  holdsNow: boolean,
): boolean | null {
  if (is === "==" || is === "!=") {
    if (typeof value === "object") return null;
    return (value === than) === (is === "==");
  }
  if (typeof value !== "number" || !Number.isFinite(value)) return null;
  if (Array.isArray(than)) {
    const [low = Number.NaN, high = Number.NaN] = than;
    const isInside = value >= low && value <= high;
    return isInside === (is === "inside");
  }
  if (typeof than !== "number") return null;
  if (holdsNow && clear_at !== undefined) return is.startsWith(">") ? value >= clear_at : value <= clear_at;
  switch (is) {
    case ">":
      return value > than;
    case ">=":
      return value >= than;
    case "<":
      return value < than;
    case "<=":
      return value <= than;
    default:
      return null;
  }
}

/** Numbers between these two bounds fulfil none of some conditions; null where no such bounds are known. */
export type QuietNumbers = readonly [above: number, below: number] | null;

/** The {@link QuietNumbers} of conditions on one value. */
export function quietNumbers(conditions: readonly ValueComparison[]): QuietNumbers {
  let above = Number.NEGATIVE_INFINITY;
  let below = Number.POSITIVE_INFINITY;
  for (const { is, than } of conditions) {
    const [low, high] = Array.isArray(than) ? than : [than, than];
    if (typeof low !== "number" || typeof high !== "number") return null;
    if (is === "==" || is === "!=" || is === "inside") return null;
    if (is !== ">" && is !== ">=") above = Math.max(above, low);
    if (is !== "<" && is !== "<=") below = Math.min(below, high);
  }
  return [above, below];
}
