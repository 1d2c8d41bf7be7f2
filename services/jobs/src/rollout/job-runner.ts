import type { Clock } from "@devmesh/service-kit/clock";
import type { ExecutionEvents } from "../executions/execution-events.ts";
import { nextExecution } from "../executions/execution-states.ts";
import type { ExecutionStore, StoredExecution } from "../store/execution-store.ts";
import { mayBegin, type OpenJob, type OpenJobs, roomIn } from "./open-jobs.ts";
import type { createPlanner } from "./planner.ts";
import { nextStep } from "./rollout.ts";
import type { SaveJob } from "./save-job.ts";

/** How often counts of a job are written while they change, and counted by index, in milliseconds. */
const writeCountsEveryMs = 1_000;
const recountEveryMs = 30_000;

/** How often a continuous job is compared with all devices, in milliseconds. */
const compareEveryMs = 600_000;

/** Executions that are cancelled in one commit. */
const cancelBatchSize = 200;

/** Pages of devices that are looked at for a job at a time, and their size. */
const walkedPages = 10;
const pageSize = 1_000;

export interface JobRunnerOptions {
  readonly store: Pick<
    ExecutionStore,
    "listOpenJobs" | "countStates" | "placeBeyond" | "listOfJob" | "change"
  >;
  readonly open: OpenJobs;
  readonly planner: Pick<ReturnType<typeof createPlanner>, "planPage" | "addAll" | "addConnected">;
  /** Wakes those of these devices that are online. */
  readonly wakeOnline: (deviceIds: readonly string[]) => Promise<void>;
  readonly events: Pick<ExecutionEvents, "changed">;
  /** Removes what the shadow of a device offers for an execution that is about to end. */
  readonly withdraw: (execution: StoredExecution) => Promise<void>;
  /** Writes a job; false where it was changed meanwhile, which is read next. */
  readonly save: SaveJob;
  readonly leads: () => boolean;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** Runs the jobs of the mesh, in the replica that leads. Each method rejects with its failure, and is repeated. */
export function createJobRunner(options: JobRunnerOptions) {
  const { store, open, planner, wakeOnline, events, withdraw, save, leads, clock, signal } = options;
  const connected = new Set<string>();
  const now = () => clock.now().getTime();

  /** Counts the executions of a job by index. */
  async function recount(one: OpenJob): Promise<void> {
    const { changes } = one;
    one.countedMs = clock.monotonicMs();
    const counts = await store.countStates(one.job.id, signal);
    if (one.changes === changes) one.counts = counts;
  }

  /** Reads what callers have changed, and forgets jobs that are settled. */
  async function read(): Promise<void> {
    const jobs = await store.listOpenJobs(signal);
    open.keep(new Set(jobs.map(({ id }) => id)));
    for (const job of jobs)
      open.set(job, open.get(job.id) === undefined ? await store.countStates(job.id, signal) : undefined);
  }

  async function advance(one: OpenJob): Promise<void> {
    const nowMs = clock.monotonicMs();
    if (nowMs - one.countedMs >= recountEveryMs) await recount(one);
    let { job, release } = nextStep(one.job, one.counts, now());
    if (job.state === "done") {
      await recount(one);
      ({ job, release } = nextStep(one.job, one.counts, now()));
    }
    if (release > 0) {
      const { place, count } = await store.placeBeyond(job.id, job.released_to, release, signal);
      job = { ...job, released_to: place, released: job.released + count };
    }
    if (job.state === "done") job = { ...job, settled: true };
    // Planning writes the counts with each page.
    const isLate = job.state !== "planning" && nowMs - one.wroteMs >= writeCountsEveryMs;
    const isNews = JSON.stringify(one.counts) !== JSON.stringify(one.job.counts);
    if (job !== one.job || (isLate && isNews)) await save(one, job);
  }

  /** Wakes devices of a job that are online, up to what it has released. */
  async function walk(one: OpenJob): Promise<void> {
    open.wakeRefused(one);
    if (now() >= one.retryAt) {
      one.retryAt = Number.POSITIVE_INFINITY;
      one.walkedTo = -1;
    }
    for (let pages = 0; pages < walkedPages; pages++) {
      const { job, walkedTo: after, refused } = one;
      if (job.action.kind === "shadow" || !mayBegin(one)) return;
      if (after >= job.released_to || refused.size > 0 || roomIn(one) === 0) return;
      const listing = { job_id: job.id, state: "queued", after, upTo: job.released_to } as const;
      const page = await store.listOfJob({ ...listing, limit: pageSize }, signal);
      one.walkedTo = page.length < pageSize ? job.released_to : (page.at(-1)?.place ?? job.released_to);
      await wakeOnline(page.map(({ device_id }) => device_id));
    }
  }

  /** Cancels executions of a cancelled job in one state, until none is left. */
  async function cancel({ job }: OpenJob, state: "queued" | "sent"): Promise<void> {
    while (leads()) {
      const page = await store.listOfJob({ job_id: job.id, state, limit: cancelBatchSize }, signal);
      if (page.length === 0) return;
      if (state === "sent") await Promise.all(page.map(withdraw));
      const at = now();
      const changes = page.flatMap((before): (readonly [StoredExecution, StoredExecution])[] => {
        const next = nextExecution(before, { kind: "cancelled", at, reason: "job_cancelled" });
        return next === null ? [] : [[before, next]];
      });
      const stored = await store.change(
        changes.map(([, next]) => next),
        signal,
      );
      for (const [before, next] of changes) if (stored.has(next.id)) events.changed(next, before);
    }
  }

  /** Plans a page of a new job, clears a cancelled one, or takes devices into a continuous one. */
  async function work(one: OpenJob): Promise<void> {
    const { state, force, continuous, planned } = one.job;
    if (state === "planning") await planner.planPage(one);
    else if (state === "cancelled") {
      await cancel(one, "queued");
      if (force) await cancel(one, "sent");
      await recount(one);
      const { queued, sent } = one.counts;
      if (queued + sent === 0) await save(one, { ...one.job, settled: true });
    } else if (continuous && state === "running" && planned !== null) await takeIn(one);
  }

  /** Works on all jobs, also where one fails. */
  async function workOnAll(jobs: readonly OpenJob[]): Promise<void> {
    const failures: unknown[] = [];
    for (const one of jobs) await work(one).catch((error: unknown) => failures.push(error));
    if (failures.length > 0) throw new AggregateError(failures, "some jobs were not planned or cleared");
  }

  /** Takes devices into a continuous job that meet its condition now. */
  async function takeIn(one: OpenJob): Promise<void> {
    const nowMs = clock.monotonicMs();
    if (nowMs - one.comparedMs >= compareEveryMs) {
      one.comparedMs = nowMs;
      await planner.addAll(one);
    }
    if (arrived.length > 0) await planner.addConnected(one, arrived);
  }

  /** Devices that have connected since the round before. */
  let arrived: readonly string[] = [];

  return {
    /** Reads, releases, pauses and ends jobs, and wakes their devices. */
    async tick(): Promise<void> {
      if (!leads()) {
        open.keep(new Set());
        return;
      }
      await read();
      for (const one of open.all) {
        await advance(one);
        await walk(one);
      }
    },

    /** A device has connected: a continuous job may take it in. */
    connected(deviceId: string): void {
      if (connected.size < pageSize && open.all.some(({ job }) => job.continuous)) connected.add(deviceId);
    },

    /** Plans new jobs, clears cancelled ones, and takes in devices of continuous ones. */
    async work(): Promise<void> {
      arrived = [...connected];
      connected.clear();
      await workOnAll(open.all);
      // Page by page of each in turn: a large job delays no small one.
      for (;;) {
        const planning = open.all.filter(({ job }) => job.state === "planning");
        if (planning.length === 0 || !leads()) return;
        await workOnAll(planning);
      }
    },
  };
}
