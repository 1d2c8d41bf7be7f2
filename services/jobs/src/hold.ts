import type { Clock } from "@devmesh/service-kit/clock";
import { cancelOfDevice } from "./executions/cancel-of-device.ts";
import type { ExecutionEvents } from "./executions/execution-events.ts";
import { nextExecution } from "./executions/execution-states.ts";
import { changeJob } from "./rollout/change-job.ts";
import type { ExecutionStore } from "./store/execution-store.ts";

/** Devices of a page. */
const pageSize = 1_000;

interface HoldOptions {
  readonly store: ExecutionStore;
  readonly events: ExecutionEvents;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/**
 * Pauses all jobs, ends attempts to update devices, and cancels all calls that wait: a restored store does not know
 * what devices have done since.
 */
export async function holdAll({ store, events, clock, signal }: HoldOptions): Promise<void> {
  const now = () => clock.now().getTime();
  for (const { id, action } of await store.listOpenJobs(signal)) {
    await changeJob(store, id, { state: "paused" }, { at: now(), by: null }, signal);
    if (action.kind === "firmware") await endAttempts(id);
  }
  for (let after = ""; ; ) {
    const page = await store.listWaiting(after, pageSize, signal);
    for (const id of new Set(page))
      await cancelOfDevice(
        { store, events, clock },
        id,
        "by_request",
        { signal },
        ({ state, job_id }) => state === "queued" && job_id === null,
      );
    const last = page.at(-1);
    if (last === undefined) return;
    after = last;
  }

  async function endAttempts(jobId: string): Promise<void> {
    for (;;) {
      const listing = { job_id: jobId, state: "sent", limit: pageSize } as const;
      const page = await store.listOfJob(listing, signal);
      if (page.length === 0) return;
      const at = now();
      await store.change(
        page.flatMap((one) => nextExecution(one, { kind: "unanswered", at }) ?? []),
        signal,
      );
    }
  }
}
