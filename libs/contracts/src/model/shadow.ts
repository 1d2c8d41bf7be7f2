import { z } from "zod";
import { JsonObject } from "./json.ts";

/** Bounds of a shadow (api.md, Device). Sizes in bytes of compact JSON of the merged document. */
export const shadowLimits = {
  desiredBytes: 32_768,
  reportedBytes: 32_768,
  tagsBytes: 8_192,
  depth: 10,
} as const;

/** A shadow for the examples of the API's description. */
export const shadowExample = {
  state: { desired: { on: true }, reported: { on: false, online: true }, delta: { on: true } },
  metadata: {
    desired: { on: { timestamp: 1_769_860_800_000 } },
    reported: { on: { timestamp: 1_769_860_000_000 } },
  },
  tags: { labels: ["boiler"] },
  version: 8,
  timestamp: 1_769_860_800_000,
};

/** A shadow as it is read. `delta` is what differs for members present in `desired`; absent when nothing does. */
export const Shadow = z
  .object({
    state: z
      .object({
        desired: JsonObject.describe("What the device should be; at most 32 KB."),
        reported: JsonObject.describe(
          "The state that the device reports, with `online` added; at most 32 KB.",
        ),
        delta: JsonObject.optional().describe("The members of `desired` that differ; absent without any."),
      })
      .meta({ id: "ShadowState", description: "The state of a device." }),
    metadata: z
      .object({
        desired: JsonObject.describe("Times of the members of `desired`."),
        reported: JsonObject.describe("Times of the members of `reported`."),
      })
      .meta({
        id: "ShadowMetadata",
        description: "Mirrors the leaves of the state with `{timestamp}`, Unix milliseconds.",
      }),
    tags: JsonObject.describe(
      "Free-form, at most 8 KB, never sent to the device; labels are `tags.labels`, an array of strings.",
    ),
    version: z.int().describe("Version number: one more with each accepted write."),
    timestamp: z.int().describe("Unix milliseconds of the last accepted write."),
  })
  .meta({ id: "Shadow", description: "The stored state of a device.", example: shadowExample });
export type Shadow = z.infer<typeof Shadow>;

const section = JsonObject.nullable();

/** A shadow write: an RFC 7396 merge patch of each section; null empties it. */
export const ShadowPatch = z
  .strictObject({
    state: z
      .strictObject({
        desired: section.optional().describe("Merged into `desired`; null empties it."),
        reported: section.optional().describe("Merged into `reported`; null empties it."),
      })
      .optional()
      .meta({ id: "ShadowStatePatch", description: "Changes of the state." }),
    tags: section.optional().describe("Merged into `tags`; null empties them."),
    version: z
      .int()
      .min(0)
      .optional()
      .describe("Version number that the shadow must have, else the write is refused with 409."),
  })
  .meta({
    id: "ShadowPatch",
    description: "Changes of a shadow: each section is a merge patch (RFC 7396), null deletes.",
    example: { state: { desired: { on: true } }, version: 8 },
  });
export type ShadowPatch = z.infer<typeof ShadowPatch>;

/** What the device gets on `ID/shadow/delta`; `state` is `{}` when nothing differs. */
export const ShadowDelta = z.object({
  state: JsonObject,
  metadata: JsonObject,
  version: z.int(),
  timestamp: z.int(),
});
export type ShadowDelta = z.infer<typeof ShadowDelta>;
