import { isJsonObject, type Json, type JsonObject } from "@devmesh/contracts/model/json";
import type { Shadow, ShadowDelta } from "@devmesh/contracts/model/shadow";
import { isEmptyObject, ownMember } from "../json-member.ts";
import type { StoredShadow } from "./stored-shadow.ts";

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
  // Against a scalar or an array even an empty object is a difference.
  return reported === undefined ? missing : (missing ?? {});
}

/** Equality of JSON values, whatever the order of members; -0 equals 0, unlike in `isDeepStrictEqual`. */
function equalJson(one: Json, other: Json): boolean {
  if (one === other) return true;
  if (Array.isArray(one)) {
    if (!Array.isArray(other) || one.length !== other.length) return false;
    return one.every((element, at) => equalJson(element, other[at] as Json));
  }
  if (!isJsonObject(one) || !isJsonObject(other)) return false;
  const names = Object.keys(one);
  if (names.length !== Object.keys(other).length) return false;
  return names.every(
    (name) => Object.hasOwn(other, name) && equalJson(one[name] as Json, other[name] as Json),
  );
}

/** The metadata of the leaves of a delta; `desired` is the section's metadata. */
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

/** A shadow as a master key reads it: with the delta, and with presence as `reported.online`. */
export function describeShadow(shadow: StoredShadow, online: boolean): Shadow {
  const { desired, reported, metadata, tags, version, timestamp } = shadow;
  const delta = deltaOf(desired, reported);
  return {
    state: { desired, reported: { ...reported, online }, ...(delta === undefined ? {} : { delta }) },
    metadata,
    tags,
    version,
    timestamp,
  };
}

/** The delta as a device gets it on `ID/shadow/delta`: an empty `state` when nothing differs (api.md, MQTT). */
export function describeDelta({
  desired,
  reported,
  metadata,
  version,
  timestamp,
}: StoredShadow): ShadowDelta {
  const state = deltaOf(desired, reported) ?? {};
  return { state, metadata: deltaMetadata(state, metadata.desired), version, timestamp };
}
