import { isJsonObject, type Json, type JsonObject } from "@devmesh/contracts/model/json";
import { isEmptyObject, ownMember } from "../registry/json-member.ts";
import { equalJson } from "./equal-json.ts";

/**
 * What a device must still merge into `reported` to reach `desired`, for members present in `desired` only; undefined
 * when there is nothing. An empty object against nothing is no difference (api.md, Device).
 */
export function deltaOf(desired: JsonObject, reported: JsonObject): JsonObject | undefined {
  const delta: JsonObject = {};
  for (const name of Object.keys(desired)) {
    const difference = differenceOf(desired[name] as Json, ownMember(reported, name));
    if (difference !== undefined) delta[name] = difference;
  }
  return isEmptyObject(delta) ? undefined : delta;
}

function differenceOf(desired: Json, reported: Json | undefined): Json | undefined {
  if (!isJsonObject(desired)) {
    return reported !== undefined && equalJson(desired, reported) ? undefined : desired;
  }
  if (isJsonObject(reported)) return deltaOf(desired, reported);
  const missing = deltaOf(desired, {});
  // A scalar or an array where an object is wanted is a difference even when that object is empty.
  return reported === undefined ? missing : (missing ?? {});
}

/** The times at which the leaves of a delta were desired; `desired` is the metadata of the whole section. */
export function deltaMetadata(delta: JsonObject, desired: JsonObject): JsonObject {
  const metadata: JsonObject = {};
  for (const name of Object.keys(delta)) {
    const difference = delta[name] as Json;
    const times = ownMember(desired, name);
    if (!isJsonObject(times)) continue;
    if (!isJsonObject(difference)) {
      metadata[name] = times;
      continue;
    }
    const below = deltaMetadata(difference, times);
    if (!isEmptyObject(below)) metadata[name] = below;
  }
  return metadata;
}
