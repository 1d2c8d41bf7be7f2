import type { Execution } from "@devmesh/contracts/model/execution";

/** An execution as it is stored. Times are Unix milliseconds. */
export interface StoredExecution
  extends Pick<
    Execution,
    | "id"
    | "device_id"
    | "action"
    | "state"
    | "reason"
    | "attempts"
    | "max_attempts"
    | "result"
    | "result_dropped"
    | "error"
    | "created_by"
  > {
  /** 1 at the creation; each change increments it. */
  readonly revision: number;
  readonly created_at: number;
  readonly expires_at: number;
  readonly sent_at: number | null;
  readonly ended_at: number | null;
  /** While it is sent: when the attempt counts as unanswered although nobody reported so. */
  readonly due_at: number | null;
  /** While it is queued: no attempt begins before. */
  readonly not_before: number;
}

/** A stored execution, and whether its device is still the one that it was created for. */
export interface FoundExecution {
  readonly execution: StoredExecution;
  /** False once that device was deleted. */
  readonly listed: boolean;
}

/** A list of executions, newest first. */
interface ExecutionListing {
  readonly device_id: string;
  readonly state?: Execution["state"];
  /** Only those before this id in that order. */
  readonly after?: string;
  readonly limit: number;
}

/**
 * Executions as documents. The port requires of a database unique keys, absent ones too, and compare-and-set on one
 * document. Writes are durable when they resolve. Ids ascend with the time of creation.
 */
export interface ExecutionStore {
  /** Stores a new execution, unless its device has `most` queued ones, or `mostOfKind` by that kind of key. */
  insert(
    execution: StoredExecution,
    bounds: { readonly most: number; readonly mostOfKind: number },
    signal: AbortSignal,
  ): Promise<boolean>;
  find(id: string, signal: AbortSignal): Promise<FoundExecution | null>;
  /** None of a device that was deleted since. */
  list(listing: ExecutionListing, signal: AbortSignal): Promise<StoredExecution[]>;
  /** Of each device its oldest queued execution that may be sent at `now`; at most 1,000 devices. */
  findDue(deviceIds: readonly string[], now: number, signal: AbortSignal): Promise<StoredExecution[]>;
  /**
   * Replaces executions whose stored revision is one less, and returns the ids of those that were. A device has one
   * execution that is `sent` at most: a change that would make a second one is refused, too.
   */
  change(executions: readonly StoredExecution[], signal: AbortSignal): Promise<ReadonlySet<string>>;
  /** Devices with queued executions, in ascending order; a device may be repeated. */
  listWaiting(after: string, limit: number, signal: AbortSignal): Promise<string[]>;
  /** Sent executions past `due_at` and queued ones past `expires_at`, in any order. */
  listOverdue(now: number, limit: number, signal: AbortSignal): Promise<StoredExecution[]>;
  /** Queued and sent executions of a device, in any order. */
  listOpen(deviceId: string, limit: number, signal: AbortSignal): Promise<StoredExecution[]>;
  /** Takes all executions of a deleted device out of the list of its id. */
  unlist(deviceId: string, signal: AbortSignal): Promise<void>;
  countOpen(signal: AbortSignal): Promise<{ readonly queued: number; readonly sent: number }>;
  /** Removes executions that ended before a time; returns how many. */
  removeEnded(before: number, limit: number, signal: AbortSignal): Promise<number>;
  /** Takes or renews the lease of the replica that sends, for `forMs` by the store's clock; false: another holds it. */
  lease(holder: string, forMs: number, signal: AbortSignal): Promise<boolean>;
  /** Gives the lease up, if `holder` has it. */
  release(holder: string, signal: AbortSignal): Promise<void>;
}

/** The device that an execution keeps busy; null for one that waits or has ended. */
export function laneOf({ state, device_id }: StoredExecution): string | null {
  return state === "sent" ? device_id : null;
}
