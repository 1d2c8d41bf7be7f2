import { isJsonObject, type Json, type JsonObject } from "@devmesh/contracts/model/json";
import { equalJson } from "./equal-json.ts";

/**
 * The RFC 7396 merge patch that makes `after` out of `before`; `{}` when they are the same. What such a patch cannot
 * express is a member that is null: it comes out as absent.
 */
export function mergePatchBetween(before: JsonObject, after: JsonObject): JsonObject {
  const patch: [string, Json][] = [];
  for (const name of Object.keys(before)) if (!Object.hasOwn(after, name)) patch.push([name, null]);
  for (const [name, value] of Object.entries(after)) {
    const held: Json | undefined = Object.hasOwn(before, name) ? before[name] : undefined;
    if (held !== undefined && equalJson(held, value)) continue;
    patch.push([name, isJsonObject(held) && isJsonObject(value) ? mergePatchBetween(held, value) : value]);
  }
  // Keeps a member named `__proto__`, so that the server refuses it instead of it being lost here.
  return Object.fromEntries(patch);
}
