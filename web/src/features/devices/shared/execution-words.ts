import type { Execution, ExecutionState } from "@devmesh/contracts/model/execution";
import type { LabelChanges } from "@devmesh/contracts/model/labels";
import type { StateLook } from "../../../components/state.tsx";

export const stateWords: Readonly<Record<ExecutionState, string>> = {
  queued: "waiting",
  sent: "sent",
  succeeded: "succeeded",
  failed: "failed",
  timed_out: "no answer",
  expired: "expired",
  cancelled: "cancelled",
};

export const executionLook: Readonly<Record<ExecutionState, StateLook>> = {
  queued: "idle",
  sent: "info",
  succeeded: "good",
  failed: "bad",
  timed_out: "warn",
  expired: "warn",
  cancelled: "idle",
};

/** Reasons whose own words need an explanation; the others are shown with blanks. */
const reasons: Readonly<Record<string, string>> = {
  device_error: "the device answered with an error",
  function_not_found: "the device has no such function",
  bad_device_reply: "the device sent an invalid answer",
  frame_too_large: "the call is too large for a frame",
  rpc_not_permitted: "the ACL does not permit it any more",
  patch_refused: "the shadow cannot take the change",
  not_eligible: "it is not what the firmware requires, or the file is not signed",
  transfer_failed: "the file did not arrive whole",
  rolled_back: "it went back to the version before",
  other_version: "it reports another version",
  version_unreadable: "its version cannot be read",
  not_reported: "it has not reported what is desired",
  not_rebooted: "it has not rebooted",
  already_installed: "it ran the version already",
  no_answer: "it was sent, and nobody knows whether the device did it",
  device_deleted: "the device was deleted",
};

/** The stages of what was sent. */
export const stageWords: Readonly<Record<NonNullable<Execution["stage"]>, string>> = {
  reporting: "reporting",
  preparing: "preparing",
  transferring: "transferring",
  rebooting: "rebooting",
  confirming: "confirming",
};

/** What is awaited in each stage. */
const awaited: Readonly<Record<NonNullable<Execution["stage"]>, string>> = {
  reporting: "until the device reports it",
  preparing: "until the device says what it runs",
  transferring: "until the device has the file",
  rebooting: "until the device reports the version",
  confirming: "until the version has lasted",
};

/** The state of an execution in a word: of what was sent, its stage. */
export function stateText({ state, stage }: Pick<Execution, "state" | "stage">): string {
  return stage !== null && state === "sent" ? stageWords[stage] : stateWords[state];
}

const ways = { url: "by URL", shadow: "by the shadow", push: "pushed" } as const;

/** What the device is asked to do, in short; `file` is the name of its firmware, where it is known. */
export function actionText(action: Execution["action"], file = "firmware"): string {
  if (action.kind === "shadow") return shadowText(action.patch);
  if (action.kind === "firmware") return `${file} ${ways[action.via]}`;
  return action.params === undefined ? action.func : `${action.func} ${JSON.stringify(action.params)}`;
}

function shadowText({
  state,
  tags,
  labels,
}: Extract<Execution["action"], { readonly kind: "shadow" }>["patch"]): string {
  const parts = [
    state && `desired ${JSON.stringify(state.desired)}`,
    tags && `tags ${JSON.stringify(tags)}`,
    labels && labelText(labels),
  ];
  return parts.filter((part) => part !== undefined).join(", ");
}

/** "label site-7, without new". */
function labelText({ add = [], remove = [] }: LabelChanges): string {
  const parts = [
    ...(add.length > 0 ? [`label ${add.join(", ")}`] : []),
    ...remove.map((label) => `without ${label}`),
  ];
  return parts.join(", ");
}

/** Whether the state is final. */
export function hasEnded({ state }: Pick<Execution, "state">): boolean {
  return state !== "queued" && state !== "sent";
}

/** What became of an execution, or what it waits for. */
export function outcomeText(execution: Execution): string {
  const { state, stage, action, reason, result, result_dropped, error, job_id } = execution;
  if (state === "queued")
    return job_id === null ? "until the device listens" : "until its turn comes and the device listens";
  if (state === "sent") return stage === null ? "until the device answers" : awaited[stage];
  if (state === "expired") return "it was never sent";
  const words = reason === null ? "" : (reasons[reason] ?? reason.replaceAll("_", " "));
  if (state === "succeeded") {
    if (reason !== null) return words;
    if (result_dropped) return "the answer was too large to keep";
    if (action.kind === "firmware") return "it reports the version";
    return action.kind === "shadow" && result === null ? "it has it" : JSON.stringify(result);
  }
  return error === null ? words : `${words}: ${error.message} (${error.code})`;
}
