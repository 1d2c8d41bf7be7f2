import type { Clock } from "@devmesh/service-kit/clock";
import { cancelOfDevice } from "./executions/cancel-of-device.ts";
import type { ExecutionEvents } from "./executions/execution-events.ts";
import { patchJob } from "./rollout/rollout.ts";
import type { ExecutionStore } from "./store/execution-store.ts";

/** Devices of a page. */
const pageSize = 1_000;

interface HoldOptions {
  readonly store: ExecutionStore;
  readonly events: ExecutionEvents;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** Pauses all jobs and cancels all calls that wait: a restored store does not know what devices have done since. */
export async function holdAll({ store, events, clock, signal }: HoldOptions): Promise<void> {
  for (const { id } of await store.listOpenJobs(signal)) {
    for (;;) {
      const job = await store.findJob(id, signal);
      if (job === null || job.ended_at !== null || job.state === "paused") break;
      const by = { at: clock.now().getTime(), by: null };
      const held = patchJob(job, { state: "paused" }, by);
      if (held === null || (await store.changeJob({ ...held, revision: job.revision + 1 }, signal))) break;
    }
  }
  for (let after = ""; ; ) {
    const page = await store.listWaiting(after, pageSize, signal);
    for (const id of new Set(page))
      await cancelOfDevice(
        { store, events, clock },
        id,
        "by_request",
        signal,
        ({ state, job_id }) => state === "queued" && job_id === null,
      );
    const last = page.at(-1);
    if (last === undefined) return;
    after = last;
  }
}
