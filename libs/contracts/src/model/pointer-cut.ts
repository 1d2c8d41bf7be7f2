import { isJsonObject, type Json, type JsonObject } from "./json.ts";
import type { PointerTree } from "./pointer-tree.ts";

/**
 * The part of a value that the pointers cover; undefined when there is none. Arrays are whole values: no pointer leads
 * into one.
 */
export function cutToPointers(value: Json, { covered, members }: PointerTree): Json | undefined {
  if (covered) return value;
  if (!isJsonObject(value)) return undefined;
  const cut: JsonObject = {};
  for (const [name, below] of members) {
    if (!Object.hasOwn(value, name)) continue;
    const part = cutToPointers(value[name] as Json, below);
    if (part !== undefined) cut[name] = part;
  }
  return Object.keys(cut).length === 0 ? undefined : cut;
}
