import type { JsonObject } from "@devmesh/contracts/model/json";

/** A shadow as it is stored: without the computed `delta` and `reported.online`. */
export interface StoredShadow {
  readonly desired: JsonObject;
  readonly reported: JsonObject;
  /** A `{timestamp}` (Unix ms) in the place of each leaf of the state, and nothing else. */
  readonly metadata: { readonly desired: JsonObject; readonly reported: JsonObject };
  readonly tags: JsonObject;
  /** 0 before the first write; each accepted write increments it. */
  readonly version: number;
  /** Unix ms of the last accepted write; of the creation before the first one. */
  readonly timestamp: number;
}

export function emptyShadow(timestamp: number): StoredShadow {
  return {
    desired: {},
    reported: {},
    metadata: { desired: {}, reported: {} },
    tags: {},
    version: 0,
    timestamp,
  };
}
