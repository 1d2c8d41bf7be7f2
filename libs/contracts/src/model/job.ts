import { z } from "zod";
import { Action, callParamsRule, checkActionPatch, isCallParams } from "./action.ts";
import { WrittenCondition } from "./condition-text.ts";
import { DeviceCondition } from "./device-condition.ts";
import { DeviceId } from "./device-id.ts";
import { durationBetween } from "./duration.ts";
import { Creator, ExecutionState, executionStates } from "./execution.ts";
import { isJsonObject, type JsonObject } from "./json.ts";
import { Timestamp } from "./time.ts";
import type { ViolationList } from "./violation.ts";
import { wellFormedText } from "./well-formed-text.ts";

/** Bounds of jobs (api.md, Jobs). */
export const jobLimits = {
  /** Ids of a target, which fit into a body. */
  ids: 7_000,
  /** Jobs that have not ended, and those of them that are continuous. */
  open: 1_000,
  continuous: 20,
  /** Entries of the log that are kept. */
  log: 100,
} as const;

export const jobStates = ["planning", "running", "paused", "done", "cancelled"] as const;
export const JobState = z
  .enum(jobStates)
  .describe(
    "`planning`: its devices are being found. `running`. `paused`: nothing more is sent, what was sent ends by itself. `done` and `cancelled` are final.",
  );
export type JobState = z.infer<typeof JobState>;

/** Why a job is paused, or ended as it did. */
const JobReason = z.enum(["by_request", "failed_percent", "stage_hold", "no_devices"]);
export type JobReason = z.infer<typeof JobReason>;

const states = z
  .array(ExecutionState)
  .min(1)
  .describe("With `of_job`: those devices whose executions are in one of these states.");

const targetWith = <T extends z.ZodType>(where: T) =>
  z
    .strictObject({
      ids: z
        .array(DeviceId)
        .min(1)
        .max(jobLimits.ids)
        .optional()
        .describe("These devices; an id that is no device ends as `failed`."),
      where: where.optional().describe("Those that meet a condition; `{}` is all."),
      of_job: z.string().min(1).max(128).optional().describe("Devices of another job, by its id."),
      states: states.optional(),
    })
    .refine(
      ({ ids, where, of_job }) => [ids, where, of_job].filter((one) => one !== undefined).length === 1,
      "must have one of `ids`, `where` and `of_job`",
    )
    .refine(
      ({ of_job, states }) => (of_job === undefined) === (states === undefined),
      "must have `of_job` and `states` together",
    );
const target = "The devices of a job: `ids`, `where`, or `of_job` with `states`.";

const JobTargetInput = targetWith(WrittenCondition).meta({ id: "JobTargetInput", description: target });

export const JobTarget = targetWith(DeviceCondition).meta({ id: "JobTarget", description: target });
export type JobTarget = z.infer<typeof JobTarget>;

const percent = z.int().min(1).max(100);
const perMinute = z.int().min(1).max(60_000);
const concurrency = z.int().min(1).max(10_000);

const isAscending = (stages: readonly { readonly percent: number }[]) =>
  stages.every(({ percent }, at) => percent > (stages[at - 1]?.percent ?? 0));

const Stage = z
  .strictObject({
    percent: percent.describe("Percentage of the devices with which it ends; their number is rounded up."),
    proceed_at: z
      .int()
      .min(0)
      .max(100)
      .default(90)
      .describe("Percentage of the number of devices so far that must have succeeded before the next stage."),
    wait: durationBetween("PT0S", "P90D")
      .default("PT0S")
      .describe("And this long after that: an ISO 8601 duration."),
    hold: z.boolean().default(false).describe("Then the job pauses, for a person to go on."),
  })
  .meta({ id: "StageInput", outputId: "Stage", description: "A stage of a rollout." });

const Rollout = z
  .strictObject({
    stages: z
      .array(Stage)
      .max(20)
      .refine(isAscending, "must have ascending `percent`")
      .default([])
      .describe("The last one is followed by all other devices."),
    per_minute: perMinute
      .optional()
      .describe("Number of devices that may be sent to each minute; absent for no limit."),
    concurrency: concurrency
      .optional()
      .describe(
        "Largest number of executions that are `sent` at a time; absent is 100, and no limit for the shadow.",
      ),
  })
  .meta({ id: "RolloutInput", outputId: "Rollout", description: "How fast a job goes." });

const attempts = z.int().min(1).max(100);
const retryOn = z.array(z.enum(["failed", "timed_out"]));
const retryAfter = durationBetween("PT1S", "P1D")
  .default("PT1M")
  .describe("How long after it: an ISO 8601 duration.");
const Retry = z
  .strictObject({
    attempts: attempts.describe("Largest number of attempts; 1 is at most once."),
    on: retryOn.describe("After what end another attempt is made."),
    after: retryAfter,
  })
  .meta({ id: "Retry", description: "When a device is tried again." });

const RetryInput = z
  .strictObject({
    attempts: attempts
      .optional()
      .describe("Largest number of attempts; by default 1, at most once, and 3 of firmware."),
    on: retryOn
      .optional()
      .describe("After what end another attempt is made: by default `timed_out`, of firmware also `failed`."),
    after: retryAfter,
  })
  .meta({ id: "RetryInput", description: "When a device is tried again; none whose firmware rolled back." });

/** The rules of retries in full. */
export function retryOf({ retry, action }: JobInput): Job["retry"] {
  const isFirmware = action.kind === "firmware";
  const { attempts = isFirmware ? 3 : 1, on = isFirmware ? ["failed", "timed_out"] : ["timed_out"] } = retry;
  return { attempts, on, after: retry.after };
}

const PauseAt = z
  .strictObject({
    failed_percent: percent.describe(
      "Percentage of the number of ended executions that `failed` or `timed_out`.",
    ),
    of_at_least: z
      .int()
      .min(1)
      .max(1_000_000)
      .default(10)
      .describe("Least number of executions that ended since the job last ran."),
  })
  .meta({ id: "PauseAtInput", outputId: "PauseAt", description: "When a job pauses by itself." });

const expiresIn = durationBetween("PT1M", "P365D");
const name = wellFormedText(128).min(1);

/** The body of `POST /jobs`. */
export const JobInput = z
  .strictObject({
    name: name.optional().describe("For people."),
    target: JobTargetInput,
    action: Action,
    continuous: z
      .boolean()
      .default(false)
      .describe("Also devices that meet the condition later, until the job is cancelled."),
    expires_in: expiresIn
      .default("P7D")
      .describe("When an execution ends that was not sent: an ISO 8601 duration of PT1M to P365D."),
    retry: RetryInput.prefault({}),
    rollout: Rollout.prefault({}),
    pause_at: PauseAt.optional(),
  })
  .refine(({ continuous, target }) => !continuous || target.where !== undefined, {
    path: ["continuous"],
    message: "needs a target with `where`",
  })
  .meta({
    id: "JobInput",
    description: "One action for the devices of a target.",
    example: {
      name: "Eco mode",
      target: { where: { labels: { all: ["site-1"] } } },
      action: { kind: "shadow", patch: { state: { desired: { app: { mode: "eco" } } } } },
      rollout: { stages: [{ percent: 5 }], per_minute: 600 },
      pause_at: { failed_percent: 20 },
    },
  });
export type JobInput = z.infer<typeof JobInput>;

/** Finds in a body what the service refuses beyond the schema; the body may break the schema. */
export function checkNewJob({ action }: JsonObject, violations: ViolationList): void {
  checkActionPatch(action, "/action", violations);
  if (!isJsonObject(action) || action.kind !== "rpc") return;
  const { params = {} } = action;
  if (!isCallParams(params)) violations.add("/action/params", callParamsRule);
}

const count = z.int().min(0);
const countsByState = Object.fromEntries(
  executionStates.map((state) => [state, count.describe(`Number of executions that are \`${state}\`.`)]),
) as Record<ExecutionState, typeof count>;

const JobLogEntry = z
  .object({
    at: Timestamp.describe("When."),
    by: Creator.nullable().describe("The key; null for the job itself."),
    what: z.string().describe("What was done, in words."),
  })
  .meta({ id: "JobLogEntry", description: "Something that was done to a job." });

/** A job as it is read. */
export const Job = z
  .object({
    id: z.string().describe("Its id."),
    name: z.string().nullable().describe("For people; null for none."),
    target: JobTarget.nullable().describe("What it is for; null for a list of ids."),
    action: Action,
    continuous: z.boolean().describe("Whether devices are taken in that meet the condition later."),
    expires_in: z.string().describe("When an execution ends that was not sent: an ISO 8601 duration."),
    retry: Retry,
    rollout: Rollout,
    pause_at: PauseAt.nullable().describe("When it pauses by itself; null for never."),
    state: JobState,
    why: JobReason.nullable().describe("Why it is paused, or ended without having sent anything."),
    devices: count.describe("Number of its devices, so far while it is being planned."),
    released: count.describe("Number of devices that may be sent to so far."),
    stage: z.int().min(1).nullable().describe("Number of the current stage, from 1; null without stages."),
    counts: z
      .object(countsByState)
      .meta({ id: "JobCounts", description: "Number of executions by state." })
      .describe("Number of its executions by state, at most some seconds old."),
    created_at: Timestamp.describe("When it was created."),
    created_by: Creator,
    ended_at: Timestamp.nullable().describe("When it ended; null before."),
    log: z.array(JobLogEntry).describe(`What was done to it, the oldest first; the last ${jobLimits.log}.`),
  })
  .meta({
    id: "Job",
    description: "One action for many devices, and how far it is.",
    example: {
      id: "01937a3c-5b1e-7000-8f00-0123456789ab",
      name: "Eco mode",
      target: { where: { labels: { all: ["site-1"] } } },
      action: {
        kind: "shadow",
        patch: { state: { desired: { app: { mode: "eco" } } } },
        wait_for_report: true,
        timeout: "P1D",
      },
      continuous: false,
      expires_in: "P7D",
      retry: { attempts: 1, on: ["timed_out"], after: "PT1M" },
      rollout: {
        stages: [{ percent: 5, proceed_at: 90, wait: "PT0S", hold: false }],
        per_minute: 600,
      },
      pause_at: { failed_percent: 20, of_at_least: 10 },
      state: "running",
      why: null,
      devices: 200,
      released: 10,
      stage: 1,
      counts: { queued: 192, sent: 2, succeeded: 6, failed: 0, timed_out: 0, expired: 0, cancelled: 0 },
      created_at: "2026-01-31T12:00:00.000Z",
      created_by: { kind: "master", key_id: "0198c2a0b7f0" },
      ended_at: null,
      log: [
        { at: "2026-01-31T12:00:00.000Z", by: { kind: "master", key_id: "0198c2a0b7f0" }, what: "created" },
      ],
    },
  });
export type Job = z.infer<typeof Job>;

/** The body of `POST /jobs/:id`. */
export const JobPatch = z
  .strictObject({
    state: z.enum(["running", "paused", "cancelled"]).optional().describe("What it is to be."),
    force: z
      .literal(true)
      .optional()
      .describe("With `cancelled`: also what was sent ends here, though devices may still do it."),
    proceed: z.literal(true).optional().describe("Begins the next stage now; a paused job runs again."),
    rollout: z
      .strictObject({
        per_minute: perMinute
          .nullable()
          .optional()
          .describe("Number of devices each minute; null for no limit."),
        concurrency: concurrency
          .nullable()
          .optional()
          .describe("Largest number of executions at a time; null as if never given."),
      })
      .meta({ id: "RolloutPatch", description: "How fast the job goes from now on." })
      .optional(),
    pause_at: PauseAt.nullable().optional().describe("When it pauses by itself; null for never."),
  })
  .refine((patch) => Object.keys(patch).length > 0, "must change something")
  .refine(({ state, force }) => force === undefined || state === "cancelled", {
    path: ["force"],
    message: "needs `state` to be `cancelled`",
  })
  .refine(({ state, proceed }) => proceed === undefined || state === undefined || state === "running", {
    path: ["proceed"],
    message: "does not go together with this `state`",
  })
  .meta({ id: "JobPatch", description: "A change of a job.", example: { state: "paused" } });
export type JobPatch = z.infer<typeof JobPatch>;

/** What a job would do, without any of it. */
export const JobTrial = z
  .object({
    devices: count.describe("Number of devices that it would have."),
    online: count.describe("Number of these that are connected now."),
    not_found: count.describe("Number of ids that are no device."),
    not_eligible: count.default(0).describe("Number of devices that do not meet `requires` of the firmware."),
    sample: z.array(DeviceId).max(10).describe("Some of the devices."),
  })
  .meta({
    id: "JobTrial",
    description: "The devices that a job would have.",
    example: { devices: 200, online: 187, not_found: 0, not_eligible: 0, sample: ["pump-1", "pump-2"] },
  });
export type JobTrial = z.infer<typeof JobTrial>;

/** The two answers of `POST /jobs`. */
export const JobOrTrial = z
  .union([Job, JobTrial])
  .meta({ id: "JobOrTrial", description: "The job, or with `dry_run` the devices that it would have." });
