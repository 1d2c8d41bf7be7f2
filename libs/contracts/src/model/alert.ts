import { z } from "zod";
import { DeviceId } from "./device-id.ts";
import { JsonValue } from "./json.ts";
import { Severity } from "./rule.ts";
import { Timestamp } from "./time.ts";

export const AlertState = z.enum(["firing", "cleared"]);

/** Why an alert ended. */
export const ClearReason = z.enum([
  "condition",
  "device_deleted",
  "not_matching",
  "rule_disabled",
  "rule_changed",
  "rule_deleted",
]);

/** Id of the built-in rule whose alert says that the mesh could not see its devices. */
export const meshRuleId = "mesh";

/** One rule that holds, or held, for one device; or the built-in rule `mesh`, for none. */
export const Alert = z
  .object({
    id: z.string().describe("Id of the alert."),
    rule_id: z
      .string()
      .describe(
        "Id of the rule; `mesh` is built in: the mesh could not see its devices, so none is offline or silent.",
      ),
    rule_name: z.string().describe("Name of the rule when it fired."),
    device_id: DeviceId.nullable().describe("Id of the device; null with the rule `mesh`."),
    severity: Severity.describe("How bad it is."),
    state: AlertState.describe("Whether it is firing."),
    since: Timestamp.describe("Since when the condition holds, `for` included."),
    fired_at: Timestamp.describe("When it fired, the last time of several."),
    cleared_at: Timestamp.nullable().describe("When it cleared; null while it is firing."),
    cleared_why: ClearReason.nullable().describe(
      "`condition`: it holds no more; `device_deleted`; `not_matching`: the device is not one of the rule any more; `rule_disabled`, `rule_changed`, `rule_deleted`.",
    ),
    value: JsonValue.describe("The value that made it fire; null where the condition has none."),
    flaps: z.int().min(0).describe("Number of times that it fired again within 10 minutes of clearing."),
    acknowledged_at: Timestamp.nullable().describe("When it was acknowledged; null if it was not."),
    acknowledged_by: z.string().nullable().describe("Id of the key that acknowledged it."),
    note: z.string().nullable().describe("What somebody wrote on it."),
  })
  .meta({
    id: "Alert",
    description: "One rule that holds, or held, for one device.",
    example: {
      id: "0198c2a0-b7f1-7000-8000-000000000002",
      rule_id: "0198c2a0-b7f1-7000-8000-000000000000",
      rule_name: "Freezer is warm",
      device_id: "pump-1",
      severity: "critical",
      state: "firing",
      since: "2026-01-31T12:00:00.000Z",
      fired_at: "2026-01-31T12:05:00.000Z",
      cleared_at: null,
      cleared_why: null,
      value: -12.5,
      flaps: 0,
      acknowledged_at: null,
      acknowledged_by: null,
      note: null,
    },
  });
export type Alert = z.output<typeof Alert>;

const firingCounts = {
  firing: z.int().min(0).describe("Number of alerts that fire."),
  unacknowledged: z.int().min(0).describe("Number of those that nobody has acknowledged."),
};
const FiringCounts = z
  .object(firingCounts)
  .meta({ id: "FiringCounts", description: "Numbers of alerts that fire." });

/** What fires, in numbers. */
export const AlertSummary = z
  .object({
    ...firingCounts,
    severities: z
      .object({
        critical: FiringCounts.describe("Those that are critical."),
        warning: FiringCounts.describe("Warnings."),
        info: FiringCounts.describe("The others."),
      })
      .meta({ id: "AlertSeverities", description: "What fires, by severity." }),
    rules: z
      .array(
        z
          .object({
            rule_id: z.string().describe("Id of the rule."),
            rule_name: z.string().describe("Name of the rule."),
            severity: Severity.describe("How bad it is."),
            ...firingCounts,
          })
          .meta({ id: "FiringRule", description: "A rule whose alerts fire." }),
      )
      .describe("Rules whose alerts fire, those with the most alerts first."),
  })
  .meta({
    id: "AlertSummary",
    description: "What fires, by severity and rule.",
    example: {
      firing: 3,
      unacknowledged: 2,
      severities: {
        critical: { firing: 3, unacknowledged: 2 },
        warning: { firing: 0, unacknowledged: 0 },
        info: { firing: 0, unacknowledged: 0 },
      },
      rules: [
        {
          rule_id: "0198c2a0-b7f1-7000-8000-000000000000",
          rule_name: "Freezer is warm",
          severity: "critical",
          firing: 3,
          unacknowledged: 2,
        },
      ],
    },
  });
export type AlertSummary = z.output<typeof AlertSummary>;

/** The most firings that a trial lists. */
export const maxTrialFirings = 1_000;

/** What a rule would have done. */
export const RuleTrial = z
  .object({
    devices: z.int().min(0).describe("Number of devices that the rule is for."),
    matching: z.int().min(0).describe("Number of those for which it fired."),
    firings: z
      .array(
        z
          .object({
            device_id: DeviceId.describe("Id of the device."),
            from: Timestamp.describe("When it fired."),
            until: Timestamp.nullable().describe("When it cleared; null if it still holds."),
            value: JsonValue.describe("The value that made it fire; null where the condition has none."),
          })
          .meta({ id: "TrialFiring", description: "A time for which the rule held." }),
      )
      .max(maxTrialFirings)
      .describe("When it fired, in the order of the records."),
    cut: z.boolean().describe("Whether there was more than could be read in time, or listed."),
  })
  .meta({
    id: "RuleTrial",
    description: "What a rule would have done.",
    example: {
      devices: 12,
      matching: 1,
      firings: [
        {
          device_id: "pump-1",
          from: "2026-01-31T12:05:00.000Z",
          until: "2026-01-31T12:20:00.000Z",
          value: -12.5,
        },
      ],
      cut: false,
    },
  });
export type RuleTrial = z.output<typeof RuleTrial>;

export const AlertPatch = z
  .strictObject({
    acknowledged: z.literal(true).optional().describe("Who and when is kept."),
    note: z.string().max(1_000).nullable().optional().describe("Replaces the note."),
  })
  .meta({ id: "AlertPatch", description: "What people do with an alert.", example: { acknowledged: true } });
export type AlertPatch = z.output<typeof AlertPatch>;
