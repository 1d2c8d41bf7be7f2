import { lengthOf } from "@devmesh/contracts/model/duration";
import type { Clock } from "@devmesh/service-kit/clock";
import { createCallContext } from "@devmesh/service-kit/rpc/context";
import type { ExecutionEvents } from "../executions/execution-events.ts";
import { newExecution } from "../executions/execution-states.ts";
import type { ExecutionStore, StoredExecution } from "../store/execution-store.ts";
import { commonPart } from "../store/job-actions.ts";
import type { OpenJob, OpenJobs } from "./open-jobs.ts";
import { firstLatePlace, placeOf } from "./rollout.ts";
import type { SaveJob } from "./save-job.ts";
import { readTarget, type TargetOptions } from "./target.ts";

/** How long `devices` may take for a page, in milliseconds. */
const pageMs = 10_000;

export interface PlannerOptions extends TargetOptions {
  readonly store: Pick<ExecutionStore, "insertOfJob" | "listOfJob" | "findOfJob">;
  readonly open: OpenJobs;
  readonly events: Pick<ExecutionEvents, "changed">;
  readonly save: SaveJob;
  readonly newId: () => string;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** Makes an execution of each device of a job. */
export function createPlanner(options: PlannerOptions) {
  const { store, devices, open, events, save, newId, clock, signal } = options;

  /** Stores executions; a page that is planned twice changes nothing, since a job has a device once. */
  async function insert(executions: readonly StoredExecution[]): Promise<void> {
    if (executions.length === 0) return;
    const stored = await store.insertOfJob(executions, signal);
    for (const one of executions) {
      if (!stored.has(one.id)) continue;
      open.count(one);
      events.changed(one);
    }
  }

  function executionOf(
    { job }: OpenJob,
    device_id: string,
    place: number,
    expiresFrom: number,
  ): StoredExecution {
    return {
      ...newExecution,
      id: newId(),
      device_id,
      job_id: job.id,
      place,
      ...commonPart(job),
      created_at: clock.now().getTime(),
      expires_at: expiresFrom + lengthOf(job.expires_in),
    };
  }

  /** Takes in those of these devices that a continuous job does not have, after all others. */
  async function addLate(one: OpenJob, deviceIds: readonly string[]): Promise<void> {
    const first = firstLatePlace + one.job.devices;
    const now = clock.now().getTime();
    await insert(deviceIds.map((id, at) => executionOf(one, id, first + at, now)));
    const devices = devicesOf(one);
    if (devices !== one.job.devices) await save(one, { ...one.job, devices });
  }

  return {
    /** Plans one page of a job. */
    async planPage(one: OpenJob): Promise<void> {
      const { job } = one;
      const { id, target, cursor, created_at } = job;
      if (target === null) return;
      using call = createCallContext({ timeoutMs: pageMs, signal, clock });
      const { found, missing, next } = await readTarget(options, target, cursor, call);
      const now = clock.now().getTime();
      const planned = (device: string) => executionOf(one, device, placeOf(id, device), created_at);
      const failed = { state: "failed", reason: "device_not_found", ended_at: now } as const;
      await insert([...found.map(planned), ...missing.map((device) => ({ ...planned(device), ...failed }))]);
      const devices = devicesOf(one);
      const end = {
        state: "running",
        planned: devices,
        counted_from: one.counts,
        target: target.ids === undefined ? target : null,
        // The first device goes at once.
        rate_at: now - 60_000 / (job.rollout.per_minute ?? 60_000),
      } as const;
      await save(one, { ...job, devices, cursor: next, ...(next === null && end) });
    },

    /** Takes in devices that have connected, where they meet the condition of a continuous job. */
    async addConnected(one: OpenJob, deviceIds: readonly string[]): Promise<void> {
      const where = one.job.target?.where;
      if (where === undefined) return;
      using call = createCallContext({ timeoutMs: pageMs, signal, clock });
      const input = { where, ids: [...deviceIds], limit: deviceIds.length };
      await addLate(one, await withoutKnown(one, (await devices.selectDevices(input, call)).items));
    },

    /** Looks over all devices for those that a continuous job does not have. */
    async addAll(one: OpenJob): Promise<void> {
      const { target } = one.job;
      for (let cursor: string | null = null; target !== null; ) {
        using call = createCallContext({ timeoutMs: pageMs, signal, clock });
        const { found, next } = await readTarget(options, target, cursor, call);
        await addLate(one, await withoutKnown(one, found));
        if (next === null) return;
        cursor = next;
      }
    },
  };

  /** Only those that the job does not have: places of late devices are without gaps. */
  async function withoutKnown(one: OpenJob, deviceIds: readonly string[]): Promise<string[]> {
    if (deviceIds.length === 0) return [];
    const found = await store.findOfJob(one.job.id, deviceIds, signal);
    const known = new Set(found.map(({ device_id }) => device_id));
    return deviceIds.filter((id) => !known.has(id));
  }
}

/** Number of devices of a job. */
function devicesOf({ counts }: OpenJob): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}
