import { isJsonObject, type Json, type JsonObject } from "@devmesh/contracts/model/json";
import { isEmptyObject, ownMember } from "../registry/json-member.ts";

/** `desired` or `reported` with the times of its leaves. */
export interface Section {
  readonly value: JsonObject;
  readonly metadata: JsonObject;
}

/**
 * Merges `patch` into a section (RFC 7396) and stamps each leaf that the patch sets, also one that keeps its value.
 * An array is one leaf; an empty object has no metadata. Null empties the section. Nothing given is changed; what the
 * patch does not touch is shared with the result. The patch must have passed the check of its structure.
 */
export function mergeSection(section: Section, patch: JsonObject | null, timestamp: number): Section {
  return patch === null ? { value: {}, metadata: {} } : merge(section, patch, timestamp);
}

function merge(section: Section, patch: JsonObject, timestamp: number): Section {
  const value = { ...section.value };
  const metadata = { ...section.metadata };
  for (const name of Object.keys(patch)) {
    const change = patch[name] as Json;
    if (change === null) {
      delete value[name];
      delete metadata[name];
    } else if (isJsonObject(change)) {
      const below = merge(memberSection(section, name), change, timestamp);
      value[name] = below.value;
      if (isEmptyObject(below.metadata)) delete metadata[name];
      else metadata[name] = below.metadata;
    } else {
      value[name] = change;
      metadata[name] = { timestamp };
    }
  }
  return { value, metadata };
}

/** The part of a section below a member; empty where the member is no object and the patch's object replaces it. */
function memberSection(section: Section, name: string): Section {
  const value = ownMember(section.value, name);
  if (!isJsonObject(value)) return { value: {}, metadata: {} };
  const metadata = ownMember(section.metadata, name);
  return { value, metadata: isJsonObject(metadata) ? metadata : {} };
}
