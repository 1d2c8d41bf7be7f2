import { redactSecrets } from "@devmesh/contracts/model/api-key";
import type { ExecutionReason } from "@devmesh/contracts/model/execution";
import type { CallAttempt } from "@devmesh/contracts/rpc-bridge";
import type { StoredExecution } from "../store/execution-store.ts";

/** Bytes of a result that is kept, as compact JSON, of a call and of an execution of a job. */
const maxResultBytes = 64 * 1024;
const maxResultBytesInJob = 4 * 1024;

/** What an execution is created with beside what it is for. */
export const newExecution = {
  state: "queued",
  reason: null,
  stage: null,
  percent: null,
  attempts: 0,
  result: null,
  error: null,
  sent_at: null,
  ended_at: null,
  due_at: null,
  not_before: 0,
  ticket: null,
  update: null,
  revision: 1,
} as const satisfies Partial<StoredExecution>;

/** What an execution is again after an attempt that another one may follow. */
const waiting = { state: "queued", stage: null, percent: null, update: null, due_at: null } as const;

/** What a device answers to an attempt. */
type AnsweredAttempt = Extract<
  CallAttempt,
  { readonly outcome: "result" | "error" | "no_such_function" | "unreadable" }
>;

/** What happens to an execution; `at` is Unix milliseconds. */
export type ExecutionEvent =
  /** An attempt begins; it counts as unanswered at `dueAt`. */
  | { readonly kind: "claimed"; readonly at: number; readonly dueAt: number }
  /** It is not begun before `until`, since the device is busy otherwise. */
  | { readonly kind: "postponed"; readonly until: number }
  /** Nothing of the attempt left the mesh: it never was. */
  | { readonly kind: "put_back" }
  | { readonly kind: "answered"; readonly at: number; readonly answer: AnsweredAttempt }
  /** The shadow is changed, and the device's report of it awaited until `dueAt`. */
  | { readonly kind: "patched"; readonly dueAt: number }
  /** The shadow is as it was to be. */
  | { readonly kind: "reported"; readonly at: number }
  /** An update is further than it was; what is absent stays. */
  | ({ readonly kind: "progressed" } & UpdateProgress)
  /** The device runs the firmware, or did before. */
  | { readonly kind: "installed"; readonly at: number; readonly reason: "already_installed" | null }
  | {
      readonly kind: "update_failed";
      readonly at: number;
      readonly reason: ExecutionReason;
      readonly error?: StoredExecution["error"];
    }
  /** What was sent got no answer, and nobody knows whether it ran. */
  | { readonly kind: "unanswered"; readonly at: number }
  /** It cannot be sent. */
  | { readonly kind: "refused"; readonly at: number; readonly reason: ExecutionReason }
  /** Its time is over. */
  | { readonly kind: "expired"; readonly at: number }
  | { readonly kind: "cancelled"; readonly at: number; readonly reason: ExecutionReason };

/** How an update has changed. Stages follow each other, and a percentage only grows. */
type UpdateProgress = Partial<Pick<StoredExecution, "stage" | "percent" | "ticket" | "update">> & {
  readonly dueAt?: number;
};

/** The stages of an update, in their order. */
const updateStages: readonly StoredExecution["stage"][] = [
  "preparing",
  "transferring",
  "rebooting",
  "confirming",
];

/** The execution after an event, one revision later; null where its state does not allow the event. */
export function nextExecution(execution: StoredExecution, event: ExecutionEvent): StoredExecution | null {
  const { state, attempts } = execution;
  switch (event.kind) {
    case "claimed":
      if (state !== "queued") return null;
      return changed(execution, {
        state: "sent",
        stage: execution.action.kind === "firmware" ? "preparing" : null,
        percent: null,
        update: null,
        attempts: attempts + 1,
        sent_at: event.at,
        due_at: event.dueAt,
      });
    case "postponed":
      return state === "queued" ? changed(execution, { not_before: event.until }) : null;
    case "put_back":
      if (state !== "sent") return null;
      return changed(execution, {
        ...waiting,
        attempts: attempts - 1,
        sent_at: attempts === 1 ? null : execution.sent_at,
      });
    case "answered":
      return state === "sent" ? endedOrAgain(execution, event.at, answered(event.answer, execution)) : null;
    case "patched":
      if (state !== "sent") return null;
      return changed(execution, { stage: "reporting", due_at: event.dueAt });
    case "reported":
      return state === "sent" ? ended(execution, event.at, { state: "succeeded" }) : null;
    case "progressed":
      return state === "sent" ? progressed(execution, event) : null;
    case "installed":
      return state === "sent"
        ? ended(execution, event.at, { state: "succeeded", reason: event.reason })
        : null;
    case "update_failed": {
      if (state !== "sent") return null;
      const { reason } = event;
      const end = { state: "failed", reason, error: withoutSecrets(event.error ?? null) } as const;
      // It would roll back again.
      if (event.reason === "rolled_back") return ended(execution, event.at, end);
      return endedOrAgain(execution, event.at, end);
    }
    case "unanswered":
      if (state !== "sent") return null;
      return endedOrAgain(execution, event.at, { state: "timed_out", reason: missing(execution) });
    case "refused":
      if (state !== "queued" && state !== "sent") return null;
      return ended(execution, event.at, { state: "failed", reason: event.reason });
    case "expired":
      if (state !== "queued") return null;
      if (attempts > 0) return ended(execution, event.at, { state: "timed_out", reason: missing(execution) });
      return ended(execution, event.at, { state: "expired" });
    case "cancelled":
      if (state !== "queued" && state !== "sent") return null;
      return ended(execution, event.at, { state: "cancelled", reason: event.reason });
  }
}

type Change = Partial<Omit<StoredExecution, "id" | "device_id" | "job_id" | "place" | "revision">>;

function changed(execution: StoredExecution, change: Change): StoredExecution {
  return { ...execution, ...change, revision: execution.revision + 1 };
}

function ended(execution: StoredExecution, at: number, change: Change): StoredExecution {
  return changed(execution, { stage: null, update: null, due_at: null, ended_at: at, ...change });
}

function progressed(
  execution: StoredExecution,
  { stage = execution.stage, percent = execution.percent, ...event }: UpdateProgress,
): StoredExecution | null {
  const { action, ticket, update } = execution;
  const isForward = updateStages.indexOf(stage) >= updateStages.indexOf(execution.stage);
  if (action.kind !== "firmware" || !isForward || (percent ?? -1) < (execution.percent ?? -1)) return null;
  return changed(execution, {
    stage,
    percent,
    ticket: event.ticket ?? ticket,
    update: event.update ?? update,
    due_at: event.dueAt ?? execution.due_at,
  });
}

/** The end, or another attempt where the execution has one left after such an end and there is time. */
function endedOrAgain(
  execution: StoredExecution,
  at: number,
  end: Change & Pick<StoredExecution, "state">,
): StoredExecution {
  const { attempts, max_attempts, retry, expires_at } = execution;
  const again = at + retry.after_ms;
  if (!retry.on.includes(end.state) || attempts >= max_attempts || again >= expires_at)
    return ended(execution, at, end);
  return changed(execution, { ...waiting, not_before: again });
}

/** The device's words may hold the URL that it was given. */
function withoutSecrets(error: StoredExecution["error"]): StoredExecution["error"] {
  return error && { ...error, message: redactSecrets(error.message) };
}

/** What a device did not do in time. */
function missing({ action, stage, update }: StoredExecution): ExecutionReason {
  if (action.kind === "shadow") return "not_reported";
  return stage === "rebooting" && update?.gone === false ? "not_rebooted" : "no_answer";
}

function answered(
  answer: AnsweredAttempt,
  { job_id }: StoredExecution,
): Change & Pick<StoredExecution, "state"> {
  switch (answer.outcome) {
    case "result": {
      const { result } = answer;
      const most = job_id === null ? maxResultBytes : maxResultBytesInJob;
      const isKept = Buffer.byteLength(JSON.stringify(result)) <= most;
      return { state: "succeeded", ...(isKept ? { result } : { result_dropped: true }) };
    }
    case "error":
      return { state: "failed", reason: "device_error", error: answer.error };
    case "no_such_function":
      return { state: "failed", reason: "function_not_found" };
    case "unreadable":
      return { state: "failed", reason: "bad_device_reply" };
  }
}
