import type { Execution } from "@devmesh/contracts/model/execution";
import type { Job } from "@devmesh/contracts/model/job";

/** A job as it is stored. Times are Unix milliseconds. */
export interface StoredJob
  extends Pick<
    Job,
    | "id"
    | "name"
    | "target"
    | "action"
    | "continuous"
    | "expires_in"
    | "retry"
    | "rollout"
    | "pause_at"
    | "state"
    | "why"
    | "devices"
    | "released"
    | "counts"
    | "created_by"
  > {
  /** 1 at the creation; each change increments it. */
  readonly revision: number;
  readonly created_at: number;
  readonly ended_at: number | null;
  readonly log: readonly {
    readonly at: number;
    readonly by: Job["created_by"] | null;
    readonly what: string;
  }[];
  /** Position in the target up to which it is planned; null before the first page and after the last. */
  readonly cursor: string | null;
  /** Devices at the end of the planning, of which stages are shares; null before. */
  readonly planned: number | null;
  /** Executions up to this place may be sent. */
  readonly released_to: number;
  /** Up to when the rate is used up. */
  readonly rate_at: number;
  /** Index of the current stage; beyond the last one are all other devices. */
  readonly stage: number;
  /** When the current stage had its share of successes. */
  readonly stage_met_at: number | null;
  /** Executions of these states when it last began to run; null until they are counted. */
  readonly counted_from: Readonly<Record<Execution["state"], number>> | null;
  /** A receiver of webhooks made it: webhooks get no event of it and of its executions. */
  readonly from_webhook?: true;
  /** Whether its cancelling ends what was sent. */
  readonly force: boolean;
  /** Whether it has ended and no execution of it is queued or sent. */
  readonly settled: boolean;
}

/** A list of jobs, newest first. */
interface JobsListing {
  readonly state?: Job["state"];
  /** Only those before this id in that order. */
  readonly after?: string;
  readonly limit: number;
}

/** Jobs as documents. Ids ascend with the time of creation. */
export interface JobStore {
  /** Stores a new job, unless so many are open, or so many continuous ones. */
  insertJob(
    job: StoredJob,
    bounds: { readonly open: number; readonly continuous: number },
    signal: AbortSignal,
  ): Promise<boolean>;
  findJob(id: string, signal: AbortSignal): Promise<StoredJob | null>;
  /** Replaces a job whose stored revision is one less; false: there is none. */
  changeJob(job: StoredJob, signal: AbortSignal): Promise<boolean>;
  listJobs(listing: JobsListing, signal: AbortSignal): Promise<StoredJob[]>;
  /** Corrects what limits count after a death of a replica; to be called about once a minute. */
  correctJobCounts(signal: AbortSignal): Promise<void>;
  /** All that are not settled, the oldest first. */
  listOpenJobs(signal: AbortSignal): Promise<StoredJob[]>;
  /** Settled jobs that ended before a time. */
  listOldJobs(before: number, limit: number, signal: AbortSignal): Promise<string[]>;
  /** Removes so many executions of a job at most, and the job with the last; true once it is gone. */
  removeJob(id: string, limit: number, signal: AbortSignal): Promise<boolean>;
}
