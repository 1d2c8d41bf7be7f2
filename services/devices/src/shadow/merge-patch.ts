import { isJsonObject, type Json, type JsonObject } from "@devmesh/contracts/model/json";
import { ownMember } from "../registry/json-member.ts";

/**
 * Merges `patch` into `target` (RFC 7396): null deletes, arrays are whole values. Neither is changed; what the patch
 * does not touch is shared with `target`, not copied. The patch must have passed the check of its structure.
 */
export function mergePatch(target: JsonObject, patch: JsonObject): JsonObject {
  const merged = { ...target };
  for (const name of Object.keys(patch)) {
    const change = patch[name] as Json;
    if (change === null) delete merged[name];
    else if (isJsonObject(change)) merged[name] = mergePatch(objectOr(ownMember(target, name)), change);
    else merged[name] = change;
  }
  return merged;
}

function objectOr(value: Json | undefined): JsonObject {
  return isJsonObject(value) ? value : {};
}
