import type { Job } from "@devmesh/contracts/model/job";
import { timestamp } from "../executions/describe-execution.ts";
import type { StoredJob } from "../store/job-store.ts";
import { shownStage } from "./rollout.ts";

/** A job as the API shows it: without a list of ids, which may be long. */
export function describeJob(job: StoredJob): Job {
  const { id, name, target, action, continuous, expires_in, retry, rollout, pause_at } = job;
  const { state, why, devices, released, counts, created_by } = job;
  return {
    id,
    name,
    target: target?.ids === undefined ? target : null,
    ...{ action, continuous, expires_in, retry, rollout, pause_at, state, why, devices, released },
    stage: shownStage(job),
    counts,
    created_at: timestamp(job.created_at),
    created_by,
    ended_at: job.ended_at === null ? null : timestamp(job.ended_at),
    log: job.log.map(({ at, ...entry }) => ({ at: timestamp(at), ...entry })),
  };
}
