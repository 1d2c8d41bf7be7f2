import type { ShadowPatch } from "@devmesh/contracts/model/shadow";
import { mergePatch } from "./merge-patch.ts";
import { mergeSection, type Section } from "./merge-section.ts";
import type { StoredShadow } from "./stored-shadow.ts";

/**
 * Whether a patch is a write at all: it names a section. `{}`, `{state: {}}` and `{version: 3}` are none and step
 * nothing; `{state: {desired: {}}}` is one and steps the version although it changes no value.
 */
export function writesShadow(patch: ShadowPatch): boolean {
  return (
    patch.state?.desired !== undefined || patch.state?.reported !== undefined || patch.tags !== undefined
  );
}

/** The shadow after one accepted write at `timestamp` (Unix ms). The patch has been checked before. */
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
