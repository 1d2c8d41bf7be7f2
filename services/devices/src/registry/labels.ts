import type { JsonObject } from "@devmesh/contracts/model/json";
import { ownMember } from "./json-member.ts";

/**
 * The labels of a device: the strings of `tags.labels`. A single string is one label, as older clients write it;
 * anything else there is no label.
 */
export function labelsOf(tags: JsonObject): string[] {
  const labels = ownMember(tags, "labels");
  if (typeof labels === "string") return [labels];
  return Array.isArray(labels) ? labels.filter((label) => typeof label === "string") : [];
}
