import { isJsonObject, type Json, type JsonObject } from "./json.ts";
import type { PointerTree } from "./pointer-tree.ts";

/**
 * What the pointers cover of a value, with the objects on the way there; undefined when that is nothing. Arrays are
 * whole values: a pointer into one covers nothing of it.
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
