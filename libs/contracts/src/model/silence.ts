import { z } from "zod";
import { WrittenCondition } from "./condition-text.ts";
import { DeviceCondition } from "./device-condition.ts";
import { alertBounds } from "./rule.ts";
import { Timestamp, TimestampInput } from "./time.ts";
import type { ViolationList } from "./violation.ts";
import { wellFormedText } from "./well-formed-text.ts";

const where = "The devices it is for; `{}` is all.";
const note = wellFormedText(1_000).nullable().describe("Why.");
const RuleIds = z.array(z.string().min(1).max(128)).min(1).max(alertBounds.rules);

export const SilenceInput = z
  .strictObject({
    where: WrittenCondition.describe(where).prefault({}),
    rule_ids: RuleIds.optional().describe("Ids of the rules it is for; all without it."),
    from: TimestampInput.optional().describe("When it begins; now without it."),
    until: TimestampInput.describe("When it ends."),
    note: note.default(null),
  })
  .meta({
    id: "SilenceInput",
    description: "A time in which alerts are kept but not sent.",
    example: {
      where: { labels: { all: ["site-1"] } },
      until: "2099-12-31T18:00:00.000Z",
      note: "Maintenance",
    },
  });
export type SilenceInput = z.output<typeof SilenceInput>;

/** Adds what no schema of one member can refuse; `now` is Unix milliseconds. */
export function checkSilence(
  { from, until }: Pick<SilenceInput, "from" | "until">,
  now: number,
  violations: ViolationList,
): void {
  const end = Date.parse(until);
  if (end <= now) violations.add("/until", "must be in the future");
  if (from !== undefined && end <= Date.parse(from)) violations.add("/until", "must be after `from`");
}

export const Silence = z
  .object({
    id: z.string().describe("Id of the silence."),
    where: DeviceCondition.describe(where),
    rule_ids: RuleIds.nullable().describe("Ids of the rules it is for; null for all."),
    from: Timestamp.describe("When it begins."),
    until: Timestamp.describe("When it ends. What still fires then is sent."),
    note,
    created_at: Timestamp.describe("When it was created."),
  })
  .meta({
    id: "Silence",
    description: "A time in which alerts are kept but not sent.",
    example: {
      id: "0198c2a0-b7f1-7000-8000-000000000003",
      where: { labels: { all: ["site-1"] } },
      rule_ids: null,
      from: "2026-01-31T12:00:00.000Z",
      until: "2099-12-31T18:00:00.000Z",
      note: "Maintenance",
      created_at: "2026-01-31T12:00:00.000Z",
    },
  });
export type Silence = z.output<typeof Silence>;
