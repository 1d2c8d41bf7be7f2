import type { ExecutionState } from "@devmesh/contracts/model/execution";
import type { Job, JobReason, JobState } from "@devmesh/contracts/model/job";
import type { StateLook } from "../../components/state.tsx";
import { actionText } from "../devices/shared/execution-words.ts";

export const jobLooks: Readonly<Record<JobState, StateLook>> = {
  planning: "info",
  running: "info",
  paused: "warn",
  done: "good",
  cancelled: "idle",
};

/** Why a job is paused, or ended without having sent anything. */
const reasons: Readonly<Record<JobReason, string>> = {
  by_request: "by request",
  failed_percent: "too many failed",
  stage_hold: "the stage is through",
  no_devices: "it has no devices",
};

/** The states of executions in the order of a bar. */
export const countedStates = [
  "succeeded",
  "failed",
  "timed_out",
  "sent",
  "expired",
  "cancelled",
  "queued",
] as const satisfies readonly ExecutionState[];

/** The state of a job: "paused: too many failed". */
export function jobStateText({ state, why }: Pick<Job, "state" | "why">): string {
  return why === null ? state : `${state}: ${reasons[why] ?? why}`;
}

/** What a job is called: its name, else what it does. */
export function jobTitle({ name, action }: Pick<Job, "name" | "action">): string {
  return name ?? actionText(action);
}

/** Whether nothing more will happen. */
export function isOver({ state }: Pick<Job, "state">): boolean {
  return state === "done" || state === "cancelled";
}

/** Executions that ended without success, and may be tried again. */
export function failedOf({ counts }: Pick<Job, "counts">): number {
  return counts.failed + counts.timed_out;
}
