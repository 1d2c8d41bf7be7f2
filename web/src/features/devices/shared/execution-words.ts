import type { Execution, ExecutionState } from "@devmesh/contracts/model/execution";
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
  no_answer: "it was sent, and nobody knows whether the device did it",
  device_deleted: "the device was deleted",
};

/** What the device is asked to do, in short. */
export function actionText(action: Execution["action"]): string {
  if (action.kind === "shadow") return shadowText(action.patch);
  if (action.kind === "firmware") return "firmware";
  return action.params === undefined ? action.func : `${action.func} ${JSON.stringify(action.params)}`;
}

function shadowText({
  state,
  tags,
}: Extract<Execution["action"], { readonly kind: "shadow" }>["patch"]): string {
  const parts = [state && `desired ${JSON.stringify(state.desired)}`, tags && `tags ${JSON.stringify(tags)}`];
  return parts.filter((part) => part !== undefined).join(", ");
}

/** Whether the state is final. */
export function hasEnded({ state }: Pick<Execution, "state">): boolean {
  return state !== "queued" && state !== "sent";
}

/** What became of an execution, or what it waits for. */
export function outcomeText(execution: Execution): string {
  const { state, reason, result, result_dropped, error } = execution;
  if (state === "queued") return "until the device listens";
  if (state === "sent") return "until the device answers";
  if (state === "expired") return "it was never sent";
  if (state === "succeeded")
    return result_dropped ? "the answer was too large to keep" : JSON.stringify(result);
  const words = reason === null ? "" : (reasons[reason] ?? reason.replaceAll("_", " "));
  return error === null ? words : `${words}: ${error.message} (${error.code})`;
}
