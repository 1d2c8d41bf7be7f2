import { z } from "zod";
import type { Json } from "./json.ts";

/** The labels of a device: the strings of `tags.labels`, which older clients write as a single string. */
export function labelsOf(tags: { readonly [tag: string]: Json }): string[] {
  const labels = Object.hasOwn(tags, "labels") ? tags.labels : undefined;
  if (typeof labels === "string") return [labels];
  return Array.isArray(labels) ? labels.filter((label) => typeof label === "string") : [];
}

const changed = z.array(z.string().min(1).max(256)).max(100);

/** Changes of labels that leave those of others as they are. */
export const LabelChanges = z
  .strictObject({
    add: changed.optional().describe("Labels that the device then has."),
    remove: changed.optional().describe("Labels that it then does not have."),
  })
  .refine(({ add = [], remove = [] }) => add.length + remove.length > 0, "must add or remove a label")
  .refine(({ add = [], remove = [] }) => !add.some((label) => remove.includes(label)), {
    path: ["remove"],
    message: "has a label that is added as well",
  })
  .meta({
    id: "LabelChanges",
    description: "Changes of the labels of a device; all others stay.",
    example: { add: ["site-7"], remove: ["new"] },
  });
export type LabelChanges = z.infer<typeof LabelChanges>;

/** Labels after a change. */
export function changedLabels(labels: readonly string[], { add = [], remove = [] }: LabelChanges): string[] {
  return [...new Set([...labels, ...add])].filter((label) => !remove.includes(label));
}
