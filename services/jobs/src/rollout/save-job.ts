import type { Clock } from "@devmesh/service-kit/clock";
import type { JobsMetrics } from "../metrics.ts";
import type { JobStore, StoredJob } from "../store/job-store.ts";
import type { JobEvents } from "./job-events.ts";
import type { OpenJob, OpenJobs } from "./open-jobs.ts";

/** Writes what became of a job that was read before, with its counts; false where it was changed meanwhile. */
export type SaveJob = (open: OpenJob, next: StoredJob) => Promise<boolean>;

export interface SaveJobOptions {
  readonly store: Pick<JobStore, "changeJob">;
  readonly open: OpenJobs;
  readonly events: JobEvents;
  readonly metrics: Pick<JobsMetrics, "paused">;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

export function createSaveJob({ store, open, events, metrics, clock, signal }: SaveJobOptions): SaveJob {
  return async (one, next) => {
    const before = one.job.state;
    const written = { ...next, counts: one.counts, revision: next.revision + 1 };
    if (!(await store.changeJob(written, signal))) return false;
    open.set(written);
    if (written.state === "paused" && before !== "paused") metrics.paused.inc({ why: written.why ?? "" });
    one.wroteMs = clock.monotonicMs();
    events.changed(written, { isUrgent: written.state !== before });
    return true;
  };
}
