import type { Job } from "@devmesh/contracts/model/job";

/** How many executions of a job had ended at a time in Unix ms. */
export interface ProgressSample {
  readonly at: number;
  readonly ended: number;
}

/** How long a sample counts, in milliseconds: a job changes its pace. */
const windowMs = 10 * 60_000;

/** Least time over which a pace is measured, in milliseconds. */
const leastMs = 15_000;

/** How many executions have ended. */
export function endedOf({ counts: { queued: _queued, sent: _sent, ...ended } }: Pick<Job, "counts">): number {
  return Object.values(ended).reduce((sum, count) => sum + count, 0);
}

/** The samples of the last minutes with one more; one that shows nothing new is left out. */
export function withSample(
  samples: readonly ProgressSample[],
  sample: ProgressSample,
): readonly ProgressSample[] {
  if (samples.at(-1)?.ended === sample.ended) return samples;
  return [...samples.filter(({ at }) => at >= sample.at - windowMs), sample];
}

/** How fast a job goes, and when it ends at that pace. */
export interface JobPaceFigures {
  /** Executions that end in a minute. */
  readonly perMinute: number;
  readonly leftMs: number;
}

/** The pace of a job, by what was seen of it or, as long as that is little, since its creation; null for none. */
export function paceOf(
  samples: readonly ProgressSample[],
  job: Pick<Job, "counts" | "created_at" | "devices">,
  now: number,
): JobPaceFigures | null {
  const ended = endedOf(job);
  const [first] = samples;
  const isSeen = first !== undefined && now - first.at >= leastMs && ended > first.ended;
  const from = isSeen ? first : { at: Date.parse(job.created_at), ended: 0 };
  const minutes = Math.max(1_000, now - from.at) / 60_000;
  const perMinute = (ended - from.ended) / minutes;
  return perMinute > 0 ? { perMinute, leftMs: ((job.devices - ended) / perMinute) * 60_000 } : null;
}

/** One stage of a rollout. */
export interface StageFigures {
  /** From 1. */
  readonly number: number;
  readonly percent: number;
  readonly devices: number;
  /** Devices up to its end. */
  readonly upTo: number;
  /** Share of its devices that may be sent to: 0 to 1. */
  readonly released: number;
}

/** The stages of a job, with the one of all other devices; none where all devices are one. */
export function stagesOf({
  rollout,
  devices,
  released,
}: Pick<Job, "rollout" | "devices" | "released">): StageFigures[] {
  if (rollout.stages.length === 0) return [];
  let from = 0;
  return [...rollout.stages, { percent: 100 }].map(({ percent }, nth) => {
    const upTo = Math.max(from, Math.ceil((devices * percent) / 100));
    const size = upTo - from;
    const share = size === 0 ? 1 : Math.min(1, Math.max(0, (released - from) / size));
    from = upTo;
    return { number: nth + 1, percent, devices: size, upTo, released: share };
  });
}
