import { z } from "zod";
import { TopicFilter } from "./acl.ts";
import { WrittenCondition } from "./condition-text.ts";
import { ConditionPointer, DeviceCondition } from "./device-condition.ts";
import { diagnosisFrames } from "./diagnostics.ts";
import { Duration, durationBetween } from "./duration.ts";
import { EmailAddress } from "./email-address.ts";
import type { JsonObject } from "./json.ts";
import { Timestamp } from "./time.ts";
import type { ViolationList } from "./violation.ts";
import { WebhookFormat } from "./webhook.ts";
import { wellFormedText } from "./well-formed-text.ts";

/** Bounds of rules, channels and silences (api.md, Alerts). */
export const alertBounds = { rules: 500, channels: 50, silences: 200, addresses: 10, topics: 100 } as const;

/** Tests of channels in an hour, so that nobody can send mail to strangers at a rate. */
export const channelTests = { perTarget: 3, total: 30 } as const;

export const Severity = z.enum(["info", "warning", "critical"]);

const ValuePointer = z
  .string()
  .max(512)
  .regex(/^(\/([^/~]|~[01])*)*$/, "must be a JSON pointer such as /celsius, or empty for the whole message");

const Bounds = z
  .array(z.number())
  .min(2)
  .max(2)
  .refine(([low = 0, high = 0]) => low <= high, "must be two numbers, the lower one first");

const comparison = {
  is: z.enum([">", ">=", "<", "<=", "==", "!=", "outside", "inside"]).describe("How it compares."),
  than: z
    .union([z.number(), wellFormedText(256), z.boolean(), Bounds])
    .meta({ id: "ComparedValue", description: "A number, a text, true, false, or two numbers." })
    .describe("What it compares to; two numbers for `outside` and `inside`, which include their bounds."),
};

const ValueCondition = z
  .strictObject({
    kind: z.literal("value").describe("A value in records."),
    topic: TopicFilter.describe("Topics relative to `db/<device id>/`."),
    pointer: ValuePointer.default("").describe("JSON pointer into the message; empty for the whole of it."),
    ...comparison,
    clear_at: z
      .number()
      .optional()
      .describe(
        "With `>`, `>=`, `<` or `<=`: once it holds, it ends only when the value is beyond this number.",
      ),
  })
  .meta({
    id: "ValueConditionInput",
    outputId: "ValueCondition",
    description: "Holds while the newest record of a topic has such a value. Other messages change nothing.",
  });
export type ValueCondition = z.output<typeof ValueCondition>;

/** How a value is compared. */
export type ValueComparison = Pick<ValueCondition, "is" | "than" | "clear_at">;

const OfflineCondition = z
  .strictObject({
    kind: z.literal("offline").describe("No connection."),
    longer_than: durationBetween("PT10S", "P365D").describe("For how long it has had no connection."),
  })
  .meta({
    id: "OfflineCondition",
    description:
      "Holds while the device has no connection for that long, time in which the mesh could not see apart.",
  });

const SilentCondition = z
  .strictObject({
    kind: z.literal("silent").describe("No record."),
    topic: TopicFilter.optional().describe("Topics relative to `db/<device id>/`; all without it."),
    longer_than: durationBetween("PT10S", "P365D").describe("For how long no record has come."),
  })
  .meta({
    id: "SilentCondition",
    description:
      "Holds while no record has come for that long, since the newest one or the creation of the device, time in which the mesh could not see apart.",
  });

const ShadowValueCondition = z
  .strictObject({
    kind: z.literal("shadow").describe("A value in the shadow."),
    pointer: ConditionPointer.describe("JSON pointer into the shadow; none leads into an array."),
    ...comparison,
  })
  .meta({
    id: "ShadowValueCondition",
    description: "Holds while the shadow has such a value. Without a value there it does not hold.",
  });

const NotTakenCondition = z
  .strictObject({
    kind: z.literal("not_taken").describe("The device does not do what was asked."),
    longer_than: durationBetween("PT10S", "P365D").describe("For how long the delta has not been empty."),
  })
  .meta({ id: "NotTakenCondition", description: "Holds while the delta has not been empty for that long." });

/** Names of frames about devices that a rule can count, besides `rpc.in.*` and `rpc.out.*`. */
const countedFrames: readonly string[] = [
  "online",
  "offline",
  "created",
  "updated",
  "throttled",
  ...diagnosisFrames,
];

const EventCondition = z
  .strictObject({
    kind: z.literal("event").describe("Something happens often."),
    name: z
      .string()
      .max(128)
      .refine(
        (name) => countedFrames.includes(name) || /^rpc\.(in|out)\.[A-Za-z0-9_-][A-Za-z0-9_.-]*$/.test(name),
        "must be the name of a frame about a device, such as login_refused or rpc.out.alarm",
      )
      .describe(
        "Name of a frame of the notification stream about a device: `rpc.out.<name>`, `rpc.in.<function>`, `online`, `offline`, `created`, `updated`, `throttled`, or one of diagnostics such as `login_refused`.",
      ),
    count: z.int().min(1).max(100).describe("Number of times that it happens at least."),
    within: durationBetween("PT1S", "PT1H").describe("In how long a time."),
  })
  .meta({ id: "EventCondition", description: "Holds while that happened so often within that time." });

/** When a rule holds for a device. */
export const RuleCondition = z
  .discriminatedUnion("kind", [
    ValueCondition,
    OfflineCondition,
    SilentCondition,
    ShadowValueCondition,
    NotTakenCondition,
    EventCondition,
  ])
  .meta({
    id: "RuleConditionInput",
    outputId: "RuleCondition",
    description: "When a rule holds for a device.",
  });
export type RuleCondition = z.output<typeof RuleCondition>;

const whereWords = "The devices it is for; `{}` is all.";

/** Members as a caller writes them. */
const members = {
  name: wellFormedText(128).min(1).describe("What people call it."),
  enabled: z.boolean().describe("Without it the rule is kept and does nothing."),
  severity: Severity.describe("How bad it is."),
  where: WrittenCondition.describe(whereWords),
  when: RuleCondition.describe("What must hold."),
  for: Duration.describe("How long a value, in a record or the shadow, must hold before the alert fires."),
  notify: z
    .array(z.string().min(1).max(128))
    .max(alertBounds.channels)
    .describe("Ids of the channels that are notified."),
  repeat: durationBetween("PT1M", "P30D")
    .nullable()
    .describe(
      "How long after a message an alert that still fires, and that nobody has acknowledged, is sent again; null for never.",
    ),
  note: wellFormedText(1_000).nullable().describe("What to do about it; part of each message."),
};

export const RuleInput = z
  .strictObject({
    ...members,
    enabled: members.enabled.default(true),
    severity: members.severity.default("warning"),
    where: members.where.prefault({}),
    for: members.for.default("PT0S"),
    notify: members.notify.default([]),
    repeat: members.repeat.default(null),
    note: members.note.default(null),
  })
  .meta({
    id: "AlertRuleInput",
    description: "A rule to create.",
    example: {
      name: "Freezer is warm",
      severity: "critical",
      where: { labels: { all: ["freezer"] } },
      when: { kind: "value", topic: "temperature", is: ">", than: -15, clear_at: -17 },
      for: "PT5M",
    },
  });
export type RuleInput = z.output<typeof RuleInput>;

export const RulePatch = z
  .strictObject(members)
  .partial()
  .meta({ id: "AlertRulePatch", description: "Members of a rule to replace.", example: { enabled: false } });
export type RulePatch = z.output<typeof RulePatch>;

export const AlertRule = z
  .object({
    id: z.string().describe("Id of the rule."),
    ...members,
    where: DeviceCondition.describe(whereWords),
    created_at: Timestamp.describe("When it was created."),
  })
  .meta({
    id: "AlertRule",
    description: "A condition over devices, and who is notified while it holds.",
    example: {
      id: "0198c2a0-b7f1-7000-8000-000000000000",
      name: "Freezer is warm",
      enabled: true,
      severity: "critical",
      where: { labels: { all: ["freezer"] } },
      when: { kind: "value", topic: "temperature", pointer: "", is: ">", than: -15, clear_at: -17 },
      for: "PT5M",
      notify: [],
      repeat: null,
      note: null,
      created_at: "2026-01-31T12:00:00.000Z",
    },
  });
export type AlertRule = z.output<typeof AlertRule>;

/** Adds what no schema of one member can refuse. `rule` has passed the schema. */
export function checkRule(rule: Pick<RuleInput, "when" | "for">, violations: ViolationList): void {
  const { when } = rule;
  if (when.kind !== "value" && when.kind !== "shadow") {
    if (!/^P(T?0[A-Z])+$/.test(rule.for))
      violations.add("/for", "goes with `value` and `shadow` alone; the condition says how long here");
    return;
  }
  const { is, than } = when;
  const clear_at = when.kind === "value" ? when.clear_at : undefined;
  const wantsBounds = is === "outside" || is === "inside";
  if (wantsBounds !== Array.isArray(than))
    violations.add("/when/than", wantsBounds ? "must be two numbers" : "must be one value");
  const isOrder = [">", ">=", "<", "<="].includes(is);
  if (isOrder && typeof than !== "number") violations.add("/when/than", "must be a number");
  if (clear_at === undefined) return;
  if (!isOrder) violations.add("/when/clear_at", "goes with >, >=, < and <= alone");
  else if (typeof than === "number" && (is.startsWith(">") ? clear_at > than : clear_at < than))
    violations.add("/when/clear_at", "must be on the side where the condition does not hold");
}

/** {@link checkRule} of a body of which only the schema's own violations are known. */
export function checkNewRule(body: JsonObject, violations: ViolationList): void {
  const parsed = RuleInput.safeParse(body);
  if (parsed.success) checkRule(parsed.data, violations);
}

const channelMembers = {
  name: wellFormedText(128).min(1).describe("What people call it."),
  to: z.array(EmailAddress).min(1).max(alertBounds.addresses).describe("Addresses that get the mail."),
  webhook_id: z.string().min(1).max(128).describe("Id of the webhook; its `events` may be empty."),
  format: WebhookFormat,
};
const mailKind = z.literal("mail").describe("Alerts are sent by mail.");
const webhookKind = z.literal("webhook").describe("Alerts are sent to a webhook.");
const channelExample = { kind: "mail", name: "On call", to: ["ann@example.com"] } as const;

export const ChannelInput = z
  .discriminatedUnion("kind", [
    z
      .strictObject({ kind: mailKind, name: channelMembers.name, to: channelMembers.to })
      .meta({ id: "MailChannelInput", description: "Addresses that get alerts by mail." }),
    z
      .strictObject({
        kind: webhookKind,
        name: channelMembers.name,
        webhook_id: channelMembers.webhook_id,
        format: channelMembers.format,
      })
      .meta({ id: "WebhookChannelInput", description: "A webhook that gets alerts." }),
  ])
  .meta({ id: "AlertChannelInput", description: "A channel to create.", example: channelExample });
export type ChannelInput = z.output<typeof ChannelInput>;

export const ChannelPatch = z
  .strictObject(channelMembers)
  .partial()
  .meta({
    id: "AlertChannelPatch",
    description: "Members of a channel to replace; its `kind` stays.",
    example: { name: "Night shift" },
  });
export type ChannelPatch = z.output<typeof ChannelPatch>;

const shownMembers = {
  id: z.string().describe("Id of the channel."),
  name: channelMembers.name,
  created_at: Timestamp.describe("When it was created."),
};

export const AlertChannel = z
  .discriminatedUnion("kind", [
    z
      .object({
        ...shownMembers,
        kind: mailKind,
        to: z.array(z.string()).describe("Addresses that get the mail."),
      })
      .meta({ id: "MailChannel", description: "Addresses that get alerts by mail." }),
    z
      .object({
        ...shownMembers,
        kind: webhookKind,
        webhook_id: z.string().describe("Id of the webhook."),
        format: WebhookFormat,
      })
      .meta({ id: "WebhookChannel", description: "A webhook that gets alerts." }),
  ])
  .meta({
    id: "AlertChannel",
    description: "Where alerts are sent.",
    example: {
      id: "0198c2a0-b7f1-7000-8000-000000000001",
      ...channelExample,
      created_at: "2026-01-31T12:00:00.000Z",
    },
  });
export type AlertChannel = z.output<typeof AlertChannel>;
