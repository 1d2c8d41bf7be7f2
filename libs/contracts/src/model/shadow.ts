import { z } from "zod";
import { JsonObject } from "./json.ts";

/** Bounds of a shadow (api.md, Device). Sizes in bytes of compact JSON of the merged document. */
export const shadowLimits = {
  desiredBytes: 32_768,
  reportedBytes: 32_768,
  tagsBytes: 8_192,
  depth: 10,
} as const;

/** A shadow as it is read. `delta` is what differs for members present in `desired`; absent when nothing does. */
export const Shadow = z
  .object({
    state: z.object({ desired: JsonObject, reported: JsonObject, delta: JsonObject.optional() }),
    /** Mirrors the leaves of the state with `{timestamp}`, Unix milliseconds. */
    metadata: z.object({ desired: JsonObject, reported: JsonObject }),
    /** Free-form, never sent to the device; labels are `tags.labels`, an array of strings. */
    tags: JsonObject,
    /** One step per accepted write. */
    version: z.int(),
    /** Unix milliseconds of the last accepted write. */
    timestamp: z.int(),
  })
  .meta({ id: "Shadow" });
export type Shadow = z.infer<typeof Shadow>;

const section = JsonObject.nullable();

/** A shadow write: an RFC 7396 merge patch of each section; null empties it. */
export const ShadowPatch = z
  .strictObject({
    state: z.strictObject({ desired: section.optional(), reported: section.optional() }).optional(),
    tags: section.optional(),
    /** When given it must equal the shadow's version, else 409. */
    version: z.int().min(0).optional(),
  })
  .meta({ id: "ShadowPatch" });
export type ShadowPatch = z.infer<typeof ShadowPatch>;

/** What the device gets on `ID/shadow/delta`; `state` is `{}` when nothing differs. */
export const ShadowDelta = z.object({
  state: JsonObject,
  metadata: JsonObject,
  version: z.int(),
  timestamp: z.int(),
});
export type ShadowDelta = z.infer<typeof ShadowDelta>;
