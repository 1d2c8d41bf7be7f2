import { z } from "zod";
import { ShadowPointer } from "./acl.ts";
import { problemWords } from "./diagnostics.ts";
import { Duration } from "./duration.ts";
import { wellFormedText } from "./well-formed-text.ts";

/** Items of each list of a condition. */
const maxItems = 50;
/** Pointers of a condition: each may read the documents of all devices. */
const maxPointers = 10;

const Word = wellFormedText(256).min(1);
const Version = wellFormedText(64).min(1).nullable();
const Problem = z.enum(["any", ...problemWords]);

/** A value of a shadow that a condition can ask for; null is for a member that is absent. */
const ShadowValue = z
  .union([wellFormedText(256), z.number(), z.boolean(), z.null()], {
    error: "must be a text of at most 256 characters, a number, true, false or null",
  })
  .meta({ id: "ShadowValue", description: "A text, a number, true, false, or null." });
export type ShadowValue = z.infer<typeof ShadowValue>;

const allOrNone = <T extends z.ZodType>(id: string, item: T, what: string) =>
  z
    .strictObject({
      all: z.array(item).max(maxItems).optional().describe(`All of these ${what}.`),
      none: z.array(item).max(maxItems).optional().describe(`None of these ${what}.`),
    })
    .meta({ id, description: `Words that a device must have, or must not have, ${what}.` });

const inOrNot = <T extends z.ZodType>(id: string, item: T, what: string) =>
  z
    .strictObject({
      in: z.array(item).min(1).max(maxItems).optional().describe(`One of these ${what}.`),
      not_in: z.array(item).max(maxItems).optional().describe(`None of these ${what}.`),
    })
    .meta({ id, description: `What a device must have, or must not have, ${what}.` });

/** Sections of a shadow that a condition can point into, with the begin of their pointer. */
export const conditionSections = {
  desired: "/state/desired",
  reported: "/state/reported",
  delta: "/state/delta",
  tags: "/tags",
} as const;

const isInSection = (pointer: string) =>
  Object.values(conditionSections).some((begin) => pointer === begin || pointer.startsWith(`${begin}/`));

/** A place in a shadow that a condition can ask about; none leads into an array. */
export const ConditionPointer = ShadowPointer.refine(
  isInSection,
  "must begin with /state/desired, /state/reported, /state/delta or /tags",
);

/** What a shadow has at one place. */
const ShadowCondition = z
  .strictObject({
    pointer: ConditionPointer.describe("JSON pointer into the shadow; none leads into an array."),
    is: ShadowValue.optional().describe("The value there; null where there is none."),
    is_not: ShadowValue.optional().describe("Not the value there; null where there must be one."),
  })
  .refine(
    ({ is, is_not }) => (is === undefined) !== (is_not === undefined),
    "must have either `is` or `is_not`",
  )
  .meta({ id: "ConditionShadow", description: "What a shadow has, or must not have, at one place." });

/** What devices must be like; a device must meet all members, and meets `{}` (api.md, Conditions). */
export const DeviceCondition = z
  .strictObject({
    text: allOrNone("ConditionText", Word, "in the id, the name or a label, as a part of it").optional(),
    labels: allOrNone("ConditionLabels", Word, "as a whole label").optional(),
    version: inOrNot("ConditionVersion", Version, "as the version of the firmware; null for none").optional(),
    online: z.boolean().optional().describe("Whether it has an MQTT connection."),
    silent_for: Duration.optional().describe(
      "It is offline for so long, or never connected since its creation.",
    ),
    seen_within: Duration.optional().describe("The opposite of `silent_for`."),
    problem: inOrNot(
      "ConditionProblem",
      Problem,
      "as names or reasons of its diagnostics of the last 24 hours; `any` is each",
    ).optional(),
    shadow: z.array(ShadowCondition).max(maxPointers).optional().describe("Values in the shadow."),
  })
  .meta({
    id: "DeviceCondition",
    description: "A condition over devices; a device must meet all members.",
    example: {
      labels: { all: ["site-1"] },
      version: { in: ["1.4.2"] },
      shadow: [{ pointer: "/state/reported/app/mode", is: "eco" }],
    },
  });
export type DeviceCondition = z.infer<typeof DeviceCondition>;

/** A condition and the older parameters of lists in one; null where no device can meet both. */
export function withOlderParameters(
  where: DeviceCondition,
  { online, filter = "" }: { readonly online: boolean | undefined; readonly filter: string | undefined },
): DeviceCondition | null {
  if (online !== undefined && where.online !== undefined && online !== where.online) return null;
  return {
    ...where,
    ...(online !== undefined && { online }),
    ...(filter !== "" && { text: { ...where.text, all: [...(where.text?.all ?? []), filter] } }),
  };
}
