import { isJsonObject, type Json, type JsonObject } from "@devmesh/contracts/model/json";
import { type ShadowPatch, shadowLimits } from "@devmesh/contracts/model/shadow";
import type { ViolationList } from "@devmesh/contracts/model/violation";
import { isEmptyObject, ownMember } from "../json-member.ts";
import type { StoredShadow } from "./stored-shadow.ts";

/**
 * Whether a patch is a write: it names a section. `{}`, `{state: {}}` and `{version: 3}` are none; an empty section is
 * one and increments the version although it changes no value.
 */
export function writesShadow(patch: ShadowPatch): boolean {
  return (
    patch.state?.desired !== undefined || patch.state?.reported !== undefined || patch.tags !== undefined
  );
}

/** The shadow after one accepted write at `timestamp` (Unix ms) of a checked patch. */
export function applyPatch(shadow: StoredShadow, patch: ShadowPatch, timestamp: number): StoredShadow {
  const merged = (name: "desired" | "reported"): Section => {
    const section = { value: shadow[name], metadata: shadow.metadata[name] };
    const change = patch.state?.[name];
    return change === undefined ? section : mergeSection(section, change, timestamp);
  };
  const desired = merged("desired");
  const reported = merged("reported");
  return {
    desired: desired.value,
    reported: reported.value,
    metadata: { desired: desired.metadata, reported: reported.metadata },
    tags:
      patch.tags === undefined ? shadow.tags : patch.tags === null ? {} : mergePatch(shadow.tags, patch.tags),
    version: shadow.version + 1,
    timestamp,
  };
}

/** Finds sections that the patch made too large, in bytes of compact JSON. */
export function checkSectionSizes(shadow: StoredShadow, patch: ShadowPatch, violations: ViolationList): void {
  const { desiredBytes, reportedBytes, tagsBytes } = shadowLimits;
  const check = (section: unknown, pointer: string, limit: number) => {
    const bytes = Buffer.byteLength(JSON.stringify(section));
    if (bytes > limit) violations.add(pointer, `would have ${bytes} bytes; ${limit} are allowed`);
  };
  if (patch.state?.desired) check(shadow.desired, "/shadow/state/desired", desiredBytes);
  if (patch.state?.reported) check(shadow.reported, "/shadow/state/reported", reportedBytes);
  if (patch.tags) check(shadow.tags, "/shadow/tags", tagsBytes);
}

/**
 * Merges a checked `patch` into `target` (RFC 7396): null deletes, arrays are whole values. Neither is changed; the
 * result shares what the patch does not touch.
 */
export function mergePatch(target: JsonObject, patch: JsonObject): JsonObject {
  const merged = { ...target };
  for (const name of Object.keys(patch)) {
    const change = patch[name] as Json;
    if (change === null) delete merged[name];
    else if (isJsonObject(change)) {
      const below = ownMember(target, name);
      merged[name] = mergePatch(isJsonObject(below) ? below : {}, change);
    } else merged[name] = change;
  }
  return merged;
}

/** `desired` or `reported` with the times of its leaves. */
interface Section {
  readonly value: JsonObject;
  readonly metadata: JsonObject;
}

/**
 * Like {@link mergePatch} for a section: stamps each leaf that the patch sets, also one that keeps its value. An array
 * is one leaf; an empty object has no metadata. Null empties the section.
 */
function mergeSection(section: Section, patch: JsonObject | null, timestamp: number): Section {
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

/** The part of a section below a member; empty where the patch's object replaces a member that is none. */
function memberSection(section: Section, name: string): Section {
  const value = ownMember(section.value, name);
  if (!isJsonObject(value)) return { value: {}, metadata: {} };
  const metadata = ownMember(section.metadata, name);
  return { value, metadata: isJsonObject(metadata) ? metadata : {} };
}
