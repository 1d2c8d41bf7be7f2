import type { Json } from "./json.ts";

/** The labels of a device: the strings of `tags.labels`, which older clients write as a single string. */
export function labelsOf(tags: { readonly [tag: string]: Json }): string[] {
  const labels = Object.hasOwn(tags, "labels") ? tags.labels : undefined;
  if (typeof labels === "string") return [labels];
  return Array.isArray(labels) ? labels.filter((label) => typeof label === "string") : [];
}
