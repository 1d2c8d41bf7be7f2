import type { Shadow, ShadowDelta } from "@devmesh/contracts/model/shadow";
import { deltaMetadata, deltaOf } from "./delta.ts";
import type { StoredShadow } from "./stored-shadow.ts";

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
