import { z } from "zod";
import { Action } from "./action.ts";
import { DeviceId } from "./device-id.ts";
import { JsonValue } from "./json.ts";
import { Timestamp } from "./time.ts";

/** States of an execution (api.md, Work for devices); all but the first two are final. */
export const executionStates = [
  "queued",
  "sent",
  "succeeded",
  "failed",
  "timed_out",
  "expired",
  "cancelled",
] as const;

export const ExecutionState = z.enum(executionStates);
export type ExecutionState = z.infer<typeof ExecutionState>;

/** Why an execution ended as it did. */
export const ExecutionReason = z.enum([
  "device_error",
  "function_not_found",
  "bad_device_reply",
  "frame_too_large",
  "patch_refused",
  "device_not_found",
  "rpc_not_permitted",
  "not_eligible",
  "transfer_failed",
  "rolled_back",
  "other_version",
  "version_unreadable",
  "no_answer",
  "not_reported",
  "not_rebooted",
  "already_installed",
  "by_request",
  "job_cancelled",
  "device_deleted",
]);
export type ExecutionReason = z.infer<typeof ExecutionReason>;

/** The key that an execution or a job was created with. */
export const Creator = z
  .object({
    kind: z.enum(["master", "public_key"]).describe("Kind of the key."),
    key_id: z.string().describe("Id of the key; of a session that of its master key."),
  })
  .meta({ id: "Creator", description: "The key that something was created with." });
export type Creator = z.infer<typeof Creator>;

const time = (what: string) => Timestamp.nullable().describe(what);

/** One piece of work for one device. */
export const Execution = z
  .object({
    id: z.string().describe("Its id."),
    device_id: DeviceId,
    job_id: z.string().nullable().default(null).describe("The job that it belongs to; null for a call."),
    action: Action,
    state: ExecutionState.describe(
      "`queued`: nothing of the next attempt was sent. `sent`: an attempt was begun. All others are final: `succeeded`, the device said so; `failed`, the device said no, or it could not be sent; `timed_out`, it was sent and nobody knows whether it ran; `expired`, nothing was ever sent; `cancelled`.",
    ),
    reason: ExecutionReason.nullable().describe(
      "Why it ended so; null for expiry and before, and for success unless the firmware was `already_installed`.",
    ),
    stage: z
      .enum(["reporting", "preparing", "transferring", "rebooting", "confirming"])
      .nullable()
      .default(null)
      .describe(
        "While it is `sent`: `reporting`, the shadow is changed and the device's report is awaited. Of firmware `preparing`, its version is read; `transferring`, it gets the file; `rebooting`, its new version is awaited; `confirming`, it has reported the new version, which must last. Else null.",
      ),
    percent: z
      .int()
      .min(0)
      .max(100)
      .nullable()
      .default(null)
      .describe("How much of the firmware the device has got in this attempt; null where nobody knows."),
    attempts: z.int().min(0).describe("Number of attempts that were sent."),
    max_attempts: z.int().min(1).describe("Largest number of attempts."),
    result: JsonValue.describe("The device's result; null before, and where it answered none."),
    result_dropped: z.literal(true).optional().describe("The result was too large to keep."),
    error: z
      .object({
        code: z.int().describe("The device's own code."),
        message: z.string().describe("The device's own words."),
      })
      .meta({ id: "ExecutionError", description: "The device's own error." })
      .nullable()
      .describe("The device's own error; null for none."),
    created_at: Timestamp.describe("When it was created."),
    created_by: Creator,
    sent_at: time("When the last attempt began; null before the first."),
    ended_at: time("When it ended; null before."),
    expires_at: Timestamp.describe("When it ends unless it has ended before."),
  })
  .meta({
    id: "Execution",
    description: "One piece of work for one device.",
    example: {
      id: "01937a3c-5b1e-7000-8f00-0123456789ab",
      device_id: "pump-1",
      job_id: null,
      action: { kind: "rpc", func: "Sys.Reboot", timeout: 10_000 },
      state: "queued",
      reason: null,
      stage: null,
      percent: null,
      attempts: 0,
      max_attempts: 1,
      result: null,
      error: null,
      created_at: "2026-01-31T12:00:00.000Z",
      created_by: { kind: "master", key_id: "0198c2a0b7f0" },
      sent_at: null,
      ended_at: null,
      expires_at: "2026-02-01T12:00:00.000Z",
    },
  });
export type Execution = z.infer<typeof Execution>;

/** The body of `POST /executions/:id`. */
export const ExecutionPatch = z
  .strictObject({
    state: z.literal("cancelled").describe("The only state that a caller can ask for."),
    force: z.boolean().optional().describe("Ends it here although it was sent; the device may still do it."),
  })
  .meta({
    id: "ExecutionPatch",
    description: "A change of an execution.",
    example: { state: "cancelled" },
  });
