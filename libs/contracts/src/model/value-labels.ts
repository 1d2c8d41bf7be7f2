import { z } from "zod";
import type { Json } from "./json.ts";
import { membersOf } from "./json-pointer.ts";

const Unit = z.string().min(1).max(16);

/** A member of `tags.units`: a unit alone, or with what people call the value (api.md, Stored data). */
const ValueLabel = z.union([
  Unit.transform((unit) => ({ unit })),
  z.object({
    unit: Unit.optional().catch(undefined),
    name: z.string().min(1).max(64).optional().catch(undefined),
  }),
]);

/** How a value is shown; a member is absent where `tags.units` has none. */
export interface ValueLabel {
  readonly unit?: string | undefined;
  readonly name?: string | undefined;
}

/** A value that a device publishes. */
export interface ValuePlace {
  /** Below `db/<device id>/`. */
  readonly topic: string;
  /** Of the value in the payload; empty for a payload that is a bare value. */
  readonly pointer: string;
}

/**
 * Unit and name of a value by `tags.units` of its device: of `<topic>#<pointer>`, else of the value's own name, which
 * is the last member of its pointer, or the last level of the topic of a bare value. What is malformed is ignored.
 */
export function valueLabelOf(
  tags: { readonly [tag: string]: Json },
  { topic, pointer }: ValuePlace,
): ValueLabel {
  const units = z.record(z.string(), z.unknown()).safeParse(Object.hasOwn(tags, "units") ? tags.units : {});
  if (!units.success) return {};
  const name = membersOf(pointer).at(-1) ?? topic.slice(topic.lastIndexOf("/") + 1);
  for (const key of [`${topic}#${pointer}`, name]) {
    const label = Object.hasOwn(units.data, key) ? ValueLabel.safeParse(units.data[key]) : undefined;
    if (label?.success) return label.data;
  }
  return {};
}
