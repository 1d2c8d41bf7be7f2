import { createHash } from "node:crypto";
import { lengthOf } from "@devmesh/contracts/model/duration";
import { type Job, type JobInput, type JobPatch, jobLimits, retryOf } from "@devmesh/contracts/model/job";
import { noExecutions, type StateCounts } from "../store/execution-store.ts";
import type { StoredJob } from "../store/job-store.ts";

/** Executions of a job that are sent at a time unless it says otherwise; the shadow needs no device to be awake. */
const usualConcurrency = 100;

/** Devices that were found late are after all others: the places of those are below it. */
export const firstLatePlace = 1;

/** Longest time of a rate that may be made up for, in milliseconds. */
const longestArrearsMs = 1_000;

const minuteMs = 60_000;

/** A job as it begins. */
export function createStoredJob(
  given: JobInput,
  created: { readonly id: string; readonly at: number; readonly by: Job["created_by"] },
): StoredJob {
  const { id, at, by } = created;
  const { name, pause_at, ...asked } = given;
  return {
    ...asked,
    retry: retryOf(given),
    id,
    name: name ?? null,
    pause_at: pause_at ?? null,
    state: "planning",
    why: null,
    devices: 0,
    released: 0,
    counts: noExecutions,
    created_at: at,
    created_by: by,
    ended_at: null,
    log: [{ at, by, what: "created" }],
    revision: 1,
    cursor: null,
    planned: null,
    released_to: -1,
    rate_at: at,
    stage: 0,
    stage_met_at: null,
    counted_from: null,
    force: false,
    settled: false,
  };
}

/** The place of a device in the order of a job: random, but the same for each page that is planned twice. */
export function placeOf(jobId: string, deviceId: string): number {
  const digest = createHash("sha256").update(`${jobId}/${deviceId}`).digest();
  return digest.readUIntBE(0, 6) / 2 ** 48;
}

/** Most executions of a job that are `sent` at a time. */
export function concurrencyOf({ rollout, action }: StoredJob): number {
  return rollout.concurrency ?? (action.kind === "shadow" ? Number.POSITIVE_INFINITY : usualConcurrency);
}

/** Whether too much has failed since the job last began to run. */
export function hasFailedTooMuch({ pause_at, counted_from }: StoredJob, counts: StateCounts): boolean {
  if (pause_at === null || counted_from === null) return false;
  const since = (state: keyof StateCounts) => counts[state] - counted_from[state];
  const failed = since("failed") + since("timed_out");
  const ended = failed + since("succeeded");
  return ended >= pause_at.of_at_least && failed * 100 >= pause_at.failed_percent * ended;
}

/** What a job does next: how it changes, and how many more devices it lets go. */
export interface RolloutStep {
  readonly job: StoredJob;
  readonly release: number;
}

/** The next step of a job that is planned, by the counts of its executions. */
export function nextStep(job: StoredJob, counts: StateCounts, now: number): RolloutStep {
  const stays = { job, release: 0 };
  if (job.planned === null || (job.state !== "running" && job.state !== "paused")) return stays;
  if (!job.continuous && counts.queued + counts.sent === 0) {
    const why = job.devices === 0 ? "no_devices" : null;
    return { job: logged({ ...job, state: "done", why, ended_at: now }, now, null, "done"), release: 0 };
  }
  if (job.state === "paused") return stays;
  if (job.counted_from === null) return { job: { ...job, counted_from: counts }, release: 0 };
  if (hasFailedTooMuch(job, counts)) return { job: paused(job, now, "failed_percent"), release: 0 };
  const entered = enterStage(job, counts, now);
  if (entered.state !== "running") return { job: entered, release: 0 };
  const left = stageEnd(entered) - entered.released;
  const { per_minute } = entered.rollout;
  if (per_minute === undefined) return { job: entered, release: Math.max(0, left) };
  return releaseAtRate(entered, { left, per_minute, now });
}

/** The job in the stage that it has reached. */
function enterStage(job: StoredJob, counts: StateCounts, now: number): StoredJob {
  const stage = job.rollout.stages[job.stage];
  if (stage === undefined) return job;
  const size = stageEnd(job);
  const isMet = job.released >= size && counts.succeeded * 100 >= stage.proceed_at * size;
  const metAt = job.stage_met_at ?? (isMet ? now : null);
  if (metAt === null) return job;
  const met = { ...job, stage_met_at: metAt };
  if (now - metAt < lengthOf(stage.wait)) return met;
  if (stage.hold) return paused(met, now, "stage_hold");
  return enterStage(proceeded(met, now, null), counts, now);
}

/** Number of devices up to the end of the current stage. */
function stageEnd({ rollout, stage, planned, devices }: StoredJob): number {
  const percent = rollout.stages[stage]?.percent;
  return percent === undefined ? devices : Math.ceil(((planned ?? 0) * percent) / 100);
}

/** Lets go as many as the rate has allowed since it was last used up; what a stage or a pause held back is lost. */
function releaseAtRate(
  job: StoredJob,
  { left, per_minute, now }: { readonly left: number; readonly per_minute: number; readonly now: number },
): RolloutStep {
  const eachMs = minuteMs / per_minute;
  const from = Math.max(job.rate_at, now - Math.max(eachMs, longestArrearsMs));
  const allowed = Math.max(0, Math.floor((now - from) / eachMs));
  if (allowed === 0) return { job, release: 0 };
  const release = Math.max(0, Math.min(left, allowed));
  return { job: { ...job, rate_at: release < allowed ? now : from + release * eachMs }, release };
}

function paused(job: StoredJob, at: number, why: "failed_percent" | "stage_hold"): StoredJob {
  const what = why === "stage_hold" ? `holds after stage ${job.stage + 1}` : "paused, since too much failed";
  return logged({ ...job, state: "paused", why }, at, null, what);
}

function proceeded(job: StoredJob, at: number, by: Job["created_by"] | null): StoredJob {
  const next = { ...job, stage: job.stage + 1, stage_met_at: null };
  return logged(next, at, by, `proceeds to stage ${next.stage + 1}`);
}

/** The number of the stage that a job shows, from 1; null for a job without stages. */
export function shownStage({ rollout, stage }: StoredJob): number | null {
  return rollout.stages.length === 0 ? null : stage + 1;
}

/** A job as a caller changes it; null where it has ended. */
export function patchJob(
  job: StoredJob,
  patch: JobPatch,
  { at, by }: { readonly at: number; readonly by: Job["created_by"] | null },
): StoredJob | null {
  if (job.ended_at !== null) return null;
  const { state, force = false, proceed, rollout, pause_at } = patch;
  let next = job;
  if (rollout !== undefined) {
    const { per_minute = next.rollout.per_minute, concurrency = next.rollout.concurrency } = rollout;
    const { stages } = next.rollout;
    const given = { ...(per_minute && { per_minute }), ...(concurrency && { concurrency }) };
    next = logged({ ...next, rollout: { stages, ...given } }, at, by, `rollout ${JSON.stringify(given)}`);
  }
  if (pause_at !== undefined)
    next = logged({ ...next, pause_at }, at, by, `pause_at ${JSON.stringify(pause_at)}`);
  const runs = state === "running" || proceed === true;
  const isHeld = job.state === "paused" && job.why === "stage_hold";
  if (runs && job.state === "paused") {
    const resumed = job.planned === null ? ("planning" as const) : ("running" as const);
    next = logged({ ...next, state: resumed, why: null, counted_from: null }, at, by, "resumed");
  }
  if ((proceed || (runs && isHeld)) && next.stage < next.rollout.stages.length)
    next = proceeded(next, at, by);
  if (state === "paused" && job.state !== "paused")
    next = logged({ ...next, state, why: "by_request" }, at, by, "paused");
  if (state === "cancelled")
    next = logged(
      { ...next, state, why: "by_request", ended_at: at, force },
      at,
      by,
      force ? "cancelled by force" : "cancelled",
    );
  return next;
}

function logged(job: StoredJob, at: number, by: Job["created_by"] | null, what: string): StoredJob {
  return { ...job, log: [...job.log, { at, by, what }].slice(-jobLimits.log) };
}
