import type { FirmwareAction } from "@devmesh/contracts/model/action";
import { lengthOf } from "@devmesh/contracts/model/duration";
import { isJsonObject, type Json } from "@devmesh/contracts/model/json";
import type { Clock } from "@devmesh/service-kit/clock";
import { commitTimeoutMs } from "../executions/update-states.ts";
import { type CallAnswer, isDone } from "../sending/device-calls.ts";
import type { StoredExecution } from "../store/execution-store.ts";

/** How long a device that does not listen is waited for while it gets a file, in milliseconds, and how often tried. */
const awayMs = 30_000;
const tryAgainMs = 1_000;

/** How often the offset is asked for after lost answers without a piece being written in between. */
const mostResumptions = 5;

/** How a push ends. */
export type PushEnd =
  /** The device has the whole file, or did not answer its end. */
  | { readonly kind: "written" }
  /** No frame has left. */
  | { readonly kind: "unsent" }
  | { readonly kind: "unanswered" }
  | { readonly kind: "too_large" }
  | { readonly kind: "no_such_function" }
  | { readonly kind: "failed"; readonly error: StoredExecution["error"] }
  /** It is not this replica's any more. */
  | { readonly kind: "stopped" };

export interface PushOptions {
  readonly action: FirmwareAction;
  readonly size: number;
  /** Whether another replica has begun it. */
  readonly isResumed: boolean;
  readonly call: (method: string, params: Json) => Promise<CallAnswer>;
  readonly read: (from: number, length: number) => Promise<Buffer>;
  /** Is given how much the device has; false: it is not this replica's any more. */
  readonly written: (bytes: number) => Promise<boolean>;
  readonly goesOn: () => boolean;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/**
 * Sends a file by `OTA.Begin`, `OTA.Write` and `OTA.End`, each after the answer to the one before. A device whose
 * `OTA.Begin` answers an offset goes on from there after a lost answer; others do not take one, so that nobody knows
 * whether they have the piece.
 */
export async function push(options: PushOptions): Promise<PushEnd> {
  const { action, size, read, written, goesOn } = options;
  let hasSent = options.isResumed;

  /** Repeats what did not reach the device for a while; that was never sent. */
  async function call(method: string, params: Json): Promise<CallAnswer> {
    const { clock, signal } = options;
    const untilMs = clock.monotonicMs() + awayMs;
    for (;;) {
      const answer = await options.call(method, params);
      hasSent ||= answer.sent;
      const isFinal = answer.sent || answer.outcome === "too_large" || !hasSent;
      if (isFinal || clock.monotonicMs() > untilMs || !goesOn()) return answer;
      await clock.sleep(tryAgainMs, signal);
    }
  }

  /** Begins, or finds that the device has the whole file of an attempt that was cut. */
  async function begin(): Promise<CallAnswer | "written"> {
    const timeout = Math.ceil(lengthOf(action.timeout) / 1_000);
    const params = { size, timeout, commit_timeout: Math.ceil(commitTimeoutMs(action) / 1_000) };
    const answer = await call("OTA.Begin", params);
    if (answer.outcome !== "error" || !/in progress/i.test(answer.error.message)) return answer;
    // An image of an attempt that was cut; its boot loader refuses half of one.
    if (isEnded(await call("OTA.End", {}))) return "written";
    return await call("OTA.Begin", params);
  }

  /** Writes all pieces; null once they are. */
  async function write(from: number, takesOffset: boolean): Promise<CallAnswer | "stopped" | null> {
    for (let at = from; at < size; ) {
      if (!goesOn()) return "stopped";
      const piece = await read(at, Math.min(action.chunk, size - at));
      const data = piece.toString("base64");
      const answer = await call("OTA.Write", takesOffset ? { offset: at, data } : { data });
      if (!isDone(answer)) return answer;
      at += piece.length;
      resumptions = 0;
      if (!(await written(at))) return "stopped";
    }
    return null;
  }

  let resumptions = 0;
  for (;;) {
    if (!goesOn()) return { kind: "stopped" };
    const begun = await begin();
    if (begun === "written") return { kind: "written" };
    if (!isDone(begun)) return hasSent || begun.outcome === "too_large" ? endOf(begun) : { kind: "unsent" };
    const offset = offsetIn(begun, size);
    const failure = await write(offset ?? 0, offset !== null);
    if (failure === "stopped") return { kind: "stopped" };
    if (failure === null) break;
    const isLost = endOf(failure).kind === "unanswered";
    if (offset === null || !isLost || ++resumptions > mostResumptions) return endOf(failure);
  }
  if (!goesOn()) return { kind: "stopped" };
  const ended = await call("OTA.End", {});
  return isEnded(ended) ? { kind: "written" } : endOf(ended);
}

/** Whether a device runs the image. Without an answer it may have rebooted: its version decides. */
function isEnded(answer: CallAnswer): boolean {
  return isDone(answer) || (answer.sent && endOf(answer).kind === "unanswered");
}

/** From where a device wants the file; null for one that takes no offset. */
function offsetIn(begun: CallAnswer, size: number): number | null {
  if (begun.outcome !== "result" || !isJsonObject(begun.result)) return null;
  const { offset } = begun.result;
  return typeof offset === "number" && Number.isInteger(offset) && offset >= 0 && offset <= size
    ? offset
    : null;
}

/** What an answer means that is no success. */
function endOf(answer: CallAnswer): PushEnd {
  switch (answer.outcome) {
    case "error":
      return { kind: "failed", error: answer.error };
    case "unreadable":
      return { kind: "failed", error: null };
    case "no_such_function":
    case "too_large":
      return { kind: answer.outcome };
    default:
      return { kind: "unanswered" };
  }
}
