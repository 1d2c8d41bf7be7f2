import type { jobEvents } from "@devmesh/contracts/jobs";
import type { Clock } from "@devmesh/service-kit/clock";
import type { Publisher } from "@devmesh/service-kit/events/publisher";
import type { CallContext } from "@devmesh/service-kit/rpc/context";
import { TokenBuckets } from "@devmesh/service-kit/token-buckets";
import type { StoredJob } from "../store/job-store.ts";
import { describeJob } from "./describe-job.ts";

/** Publishes changes of jobs; best effort. */
export interface JobEvents {
  /** Publishes a job as it is now; once a second at most, unless its state has changed. */
  changed(
    job: StoredJob,
    options: { readonly isUrgent: boolean; readonly call?: CallContext | undefined },
  ): void;
}

/** Jobs that are published about in turn. */
const maxJobs = 2_000;

export function createJobEvents(
  publisher: Pick<Publisher<typeof jobEvents>, "job_changed">,
  clock: Clock,
): JobEvents {
  const budget = new TokenBuckets({ size: 1, refill: 1, maxBuckets: maxJobs });
  return {
    changed(job, { isUrgent, call }) {
      if (!budget.tryTake(job.id, clock.monotonicMs()) && !isUrgent) return;
      const { id, from_webhook: fromWebhook } = job;
      const timestamp = clock.now().toISOString();
      publisher.job_changed({ id, timestamp, job: describeJob(job) }, { call, fromWebhook });
    },
  };
}
