import type { Clock } from "@devmesh/service-kit/clock";
import type { JobGate } from "../sending/sender.ts";
import { noExecutions, type StateCounts, type StoredExecution } from "../store/execution-store.ts";
import type { StoredJob } from "../store/job-store.ts";
import { concurrencyOf, hasFailedTooMuch } from "./rollout.ts";

/** Devices of a job that are remembered because too much of it was under way. */
const maxRefused = 1_000;

/** A job that has not ended, as the leader knows it. */
export interface OpenJob {
  job: StoredJob;
  /** Exact, but for what another replica has changed since they were last counted. */
  counts: StateCounts;
  /** Number of changes of `counts`; a count in the store is void where there was one meanwhile. */
  changes: number;
  /** Up to which place its devices were looked at, and woken where they are online. */
  walkedTo: number;
  /** Devices that listened while too much was under way. */
  readonly refused: Set<string>;
  /** When the next attempt of some execution may begin, in Unix milliseconds; infinite for none that is known. */
  retryAt: number;
  /** When it was last written, counted by index and compared with all devices, by the monotonic clock. */
  wroteMs: number;
  countedMs: number;
  comparedMs: number;
}

/** Wakes devices. */
type Wake = (deviceIds: readonly string[]) => void;

/** The jobs that have not ended, with the counts of their executions; of the replica that leads. */
export class OpenJobs implements JobGate {
  readonly #open = new Map<string, OpenJob>();
  readonly #wake: Wake;
  readonly #pushRoom: () => number;
  readonly #clock: Clock;

  /** `pushRoom`: how many more devices may be pushed a file, of all jobs. */
  constructor(wake: Wake, pushRoom: () => number, clock: Clock) {
    this.#wake = wake;
    this.#pushRoom = pushRoom;
    this.#clock = clock;
  }

  get all(): readonly OpenJob[] {
    return [...this.#open.values()];
  }

  get(id: string): OpenJob | undefined {
    return this.#open.get(id);
  }

  /** Takes a job as it was read or written; an older revision than the known one changes nothing. */
  set(job: StoredJob, counts?: StateCounts): void {
    const known = this.#open.get(job.id);
    if (known === undefined) {
      const times = {
        wroteMs: 0,
        countedMs: this.#clock.monotonicMs(),
        comparedMs: Number.NEGATIVE_INFINITY,
      };
      const begun = { counts: counts ?? noExecutions, changes: 0, walkedTo: -1, refused: new Set<string>() };
      const retryAt = Number.POSITIVE_INFINITY;
      this.#open.set(job.id, { job, ...begun, retryAt, ...times });
      return;
    }
    if (job.revision < known.job.revision) return;
    // What was woken while it paused was not sent.
    if (job.state === "running" && known.job.state !== "running") known.walkedTo = -1;
    known.job = job;
  }

  /** Forgets all but these jobs. */
  keep(ids: ReadonlySet<string>): void {
    for (const id of this.#open.keys()) if (!ids.has(id)) this.#open.delete(id);
  }

  /** Counts an execution that was created or has changed. */
  count(after: StoredExecution, before?: StoredExecution): void {
    const open = this.#open.get(after.job_id ?? "");
    if (open === undefined) return;
    if (after.state === "queued" && after.not_before > 0)
      open.retryAt = Math.min(open.retryAt, after.not_before);
    if (before?.state === after.state) return;
    open.changes++;
    const counts = { ...open.counts, [after.state]: open.counts[after.state] + 1 };
    if (before !== undefined && counts[before.state]-- === 0) {
      // The counts were read after the change was stored, and before it was noted here.
      counts[before.state] = 0;
      open.countedMs = Number.NEGATIVE_INFINITY;
    }
    open.counts = counts;
    if (before?.state === "sent") this.wakeRefused(open);
  }

  /** Wakes devices for which there is room now. */
  wakeRefused(open: OpenJob): void {
    if (!mayBegin(open)) return;
    const room = isPush(open) ? Math.min(roomIn(open), this.#pushRoom()) : roomIn(open);
    const ids = [...open.refused].slice(0, room);
    for (const id of ids) open.refused.delete(id);
    if (ids.length > 0) this.#wake(ids);
  }

  released(): ReadonlyMap<string, number> {
    const calling = this.all.filter((open) => open.job.action.kind !== "shadow" && mayBegin(open));
    return new Map(calling.map(({ job }) => [job.id, job.released_to]));
  }

  admit(due: readonly StoredExecution[]): StoredExecution[] {
    const room = new Map<string, number>();
    let pushes = this.#pushRoom();
    return due.filter(({ job_id, device_id }) => {
      if (job_id === null) return true;
      const open = this.#open.get(job_id);
      if (open === undefined || !mayBegin(open)) return false;
      const left = room.get(job_id) ?? roomIn(open);
      room.set(job_id, left - 1);
      const isFull = isPush(open) && --pushes < 0;
      if (left > 0 && !isFull) return true;
      if (open.refused.size < maxRefused) open.refused.add(device_id);
      else open.walkedTo = -1;
      return false;
    });
  }
}

function isPush({ job: { action } }: OpenJob): boolean {
  return action.kind === "firmware" && action.via === "push";
}

/** How many more executions of a job may be under way. */
export function roomIn({ job, counts }: OpenJob): number {
  return Math.max(0, concurrencyOf(job) - counts.sent);
}

/** Whether executions of a job may be begun. */
export function mayBegin({ job, counts }: OpenJob): boolean {
  return job.state === "running" && !hasFailedTooMuch(job, counts);
}
