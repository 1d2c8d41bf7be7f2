import type { devices } from "@devmesh/contracts/devices";
import type { Clock } from "@devmesh/service-kit/clock";
import { createCallContext } from "@devmesh/service-kit/rpc/context";
import type { Client } from "@devmesh/service-kit/rpc/implementation";
import type { ExecutionEvent } from "../executions/execution-states.ts";
import type { ExecutionStore, StoredExecution } from "../store/execution-store.ts";
import type { CallSender } from "./sender.ts";

/** Devices of a page, and the pause between pages, in milliseconds. */
const pageSize = 1_000;
const pauseMs = 100;

/** Executions that end for lack of time in one commit, and ended ones that are removed at a time. */
const batchSize = 1_000;

/** Of those that end for lack of time, so many are looked at together. */
const maxOverdueChecks = 100;

/** How long `devices` may take, in milliseconds. */
const presencesMs = 5_000;

const dayMs = 24 * 3_600_000;

export interface SweepOptions {
  readonly store: Pick<
    ExecutionStore,
    "listWaiting" | "listOverdue" | "removeEnded" | "listOldJobs" | "removeJob"
  >;
  readonly devices: Pick<Client<typeof devices>, "readPresences">;
  readonly sender: Pick<CallSender, "wake" | "mayTry" | "settle">;
  /** What becomes of a change of a shadow, and of an update, that is past its time. */
  readonly overdue: Readonly<
    Record<"shadow" | "firmware", (execution: StoredExecution) => Promise<ExecutionEvent>>
  >;
  readonly leads: () => boolean;
  readonly retentionDays: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** What no event reports: a lost event, the end of a time, an old execution. Each rejects with its failure. */
export function createSweeps(options: SweepOptions) {
  const { store, devices, sender, overdue, leads, retentionDays, clock, signal } = options;

  /** Wakes those of these devices that are online. */
  async function wakeOnline(deviceIds: readonly string[]): Promise<void> {
    const ids = deviceIds.filter(sender.mayTry);
    if (ids.length === 0) return;
    using call = createCallContext({ timeoutMs: presencesMs, signal, clock });
    sender.wake((await devices.readPresences({ ids }, call)).online);
  }

  async function endOf(execution: StoredExecution, at: number): Promise<ExecutionEvent> {
    if (execution.state === "queued") return { kind: "expired", at };
    const { kind } = execution.action;
    return kind === "rpc" ? { kind: "unanswered", at } : overdue[kind](execution);
  }

  return {
    wakeOnline,

    /** Wakes all devices that are online and have something queued. */
    async wakeAll(): Promise<void> {
      for (let after = ""; leads(); ) {
        const page = await store.listWaiting(after, pageSize, signal);
        const last = page.at(-1);
        if (last === undefined) return;
        await wakeOnline([...new Set(page)]);
        if (page.length < pageSize) return;
        after = last;
        await clock.sleep(pauseMs, signal);
      }
    },

    /** Ends what has had its time. */
    async endOverdue(): Promise<void> {
      while (leads()) {
        const at = clock.now().getTime();
        const overdue = await store.listOverdue(at, batchSize, signal);
        if (overdue.length === 0) return;
        for (let from = 0; from < overdue.length; from += maxOverdueChecks) {
          const some = overdue.slice(from, from + maxOverdueChecks);
          await sender.settle(
            await Promise.all(some.map(async (one) => [one, await endOf(one, at)] as const)),
          );
        }
      }
    },

    /** Removes what ended long ago. */
    async removeEnded(): Promise<void> {
      const before = clock.now().getTime() - retentionDays * dayMs;
      while (leads() && (await store.removeEnded(before, batchSize, signal)) > 0);
      for (const id of await store.listOldJobs(before, batchSize, signal))
        while (leads() && !(await store.removeJob(id, batchSize, signal)));
    },
  };
}
