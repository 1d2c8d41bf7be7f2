import type { Execution } from "@devmesh/contracts/model/execution";
import type { JobStore } from "./job-store.ts";

/** What is known of an attempt to update a device, once the version before is read. Times are Unix milliseconds. */
interface UpdateState {
  /** The version before; null where the device reported none. */
  readonly from: string | null;
  /** Whether the device was away since it had the whole file. */
  readonly gone: boolean;
  /** Whether it has reported the new version. */
  readonly seen: boolean;
  /** The version that it reports, null for none, and since when; null where it was away after that. */
  readonly version: string | null;
  readonly since: number | null;
}

/** An execution as it is stored. Times are Unix milliseconds. */
export interface StoredExecution
  extends Pick<
    Execution,
    | "id"
    | "device_id"
    | "job_id"
    | "action"
    | "state"
    | "reason"
    | "stage"
    | "percent"
    | "attempts"
    | "max_attempts"
    | "result"
    | "result_dropped"
    | "error"
    | "created_by"
  > {
  /** When another attempt follows one that ended so. */
  readonly retry: { readonly on: readonly Execution["state"][]; readonly after_ms: number };
  /** Where it is in the order of its job's rollout; 0 for a call. */
  readonly place: number;
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
  /** Digest of the ticket of the last attempt that had one, also after the end; null for none. */
  readonly ticket: string | null;
  /** A receiver of webhooks made it, or cancelled it: webhooks get no event of it. */
  readonly from_webhook?: true;
  /** Of firmware, while it is sent and beyond `preparing`; else null. */
  readonly update: UpdateState | null;
}

/** A stored execution, and whether its device is still the one that it was created for. */
export interface FoundExecution {
  readonly execution: StoredExecution;
  /** False once that device was deleted. */
  readonly listed: boolean;
}

/** Executions of a job in the order of its rollout. */
interface JobListing {
  readonly job_id: string;
  readonly state?: Execution["state"];
  /** Only those beyond this place, and up to that one. */
  readonly after?: number;
  readonly upTo?: number;
  readonly limit: number;
}

/** Executions by state. */
export type StateCounts = Readonly<Record<Execution["state"], number>>;

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
export interface ExecutionStore extends JobStore {
  /** Stores a new call, unless its device has `most` queued ones, or `mostOfKind` by that kind of key. */
  insert(
    execution: StoredExecution,
    bounds: { readonly most: number; readonly mostOfKind: number },
    signal: AbortSignal,
  ): Promise<boolean>;
  find(id: string, signal: AbortSignal): Promise<FoundExecution | null>;
  /** The one whose `ticket` has this digest. */
  findByTicket(digest: string, signal: AbortSignal): Promise<StoredExecution | null>;
  /** None of a device that was deleted since. */
  list(listing: ExecutionListing, signal: AbortSignal): Promise<StoredExecution[]>;
  /**
   * Of each device its oldest queued execution that may be sent at `now`: a call, or one of a job up to the place that
   * the job has released; at most 1,000 devices.
   */
  findDue(
    deviceIds: readonly string[],
    now: number,
    released: ReadonlyMap<string, number>,
    signal: AbortSignal,
  ): Promise<StoredExecution[]>;
  /** Stores new executions of jobs, but for a device that the job has already; returns the ids of those stored. */
  insertOfJob(executions: readonly StoredExecution[], signal: AbortSignal): Promise<ReadonlySet<string>>;
  listOfJob(listing: JobListing, signal: AbortSignal): Promise<StoredExecution[]>;
  /** Those that a job has for these devices, in any order; at most 1,000. */
  findOfJob(jobId: string, deviceIds: readonly string[], signal: AbortSignal): Promise<StoredExecution[]>;
  /**
   * The place of the execution of a job that is so many beyond a place, or of its last one, and how many there are up
   * to it.
   */
  placeBeyond(
    jobId: string,
    place: number,
    count: number,
    signal: AbortSignal,
  ): Promise<{ readonly place: number; readonly count: number }>;
  countStates(jobId: string, signal: AbortSignal): Promise<StateCounts>;
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
  /** Removes calls that ended before a time; returns how many. Executions of a job go with it. */
  removeEnded(before: number, limit: number, signal: AbortSignal): Promise<number>;
}

/**
 * A key that one execution has at a time: the device that a sent execution keeps busy. A change of the shadow keeps no
 * device busy, nor does firmware that a device fetches by its shadow or has got, so its job is added; no device id has
 * a slash. Null for one that waits or has ended.
 */
export function laneOf({ state, stage, device_id, job_id, action }: StoredExecution): string | null {
  if (state !== "sent") return null;
  const isFree =
    action.kind === "shadow" ||
    (action.kind === "firmware" &&
      (action.via === "shadow" || stage === "rebooting" || stage === "confirming"));
  return isFree ? `${device_id}/${job_id}` : device_id;
}

/** When the execution ended, for calls alone: their age removes them. */
export function callEndOf({ job_id, ended_at }: StoredExecution): number | null {
  return job_id === null ? ended_at : null;
}

/** Whether a job lets an execution go; a call belongs to none. */
export function isReleased(
  { job_id, place }: StoredExecution,
  released: ReadonlyMap<string, number>,
): boolean {
  return job_id === null || place <= (released.get(job_id) ?? -1);
}

export const noExecutions: StateCounts = {
  queued: 0,
  sent: 0,
  succeeded: 0,
  failed: 0,
  timed_out: 0,
  expired: 0,
  cancelled: 0,
};

/** When a call is sent again. */
export const retryOfCalls: StoredExecution["retry"] = { on: ["timed_out"], after_ms: 60_000 };

/** An execution of the JSON that an adapter wrote. */
export function readExecution(document: string): StoredExecution {
  return JSON.parse(document);
}
