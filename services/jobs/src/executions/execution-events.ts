import type { jobEvents } from "@devmesh/contracts/jobs";
import type { Clock } from "@devmesh/service-kit/clock";
import type { Publisher } from "@devmesh/service-kit/events/publisher";
import { TokenBuckets } from "@devmesh/service-kit/token-buckets";
import type { StoredExecution } from "../store/execution-store.ts";
import { describeExecution } from "./describe-execution.ts";

/** More would drive the events of others out of the stream, which keeps those of an hour (ADR 20). */
const eventsPerSecond = 50;

/** Of these, so many are left for calls: a job has thousands of executions. */
const leftForCalls = 25;

/** Publishes changes of executions; best effort. */
export interface ExecutionEvents {
  /**
   * Publishes an execution that was created, without `before`, has ended, or is an update that went on; beyond 50 a
   * second nothing. Every change that this replica stores is passed here.
   */
  changed(execution: StoredExecution, before?: StoredExecution): void;
  /** Wakes the replica that sends. */
  due(deviceIds: readonly string[]): void;
}

export interface ExecutionEventsOptions {
  readonly publisher: Pick<Publisher<typeof jobEvents>, "execution_changed" | "due">;
  /** Is given each change of an execution of a job. */
  readonly onChanged: (execution: StoredExecution, before: StoredExecution) => void;
  readonly clock: Clock;
}

export function createExecutionEvents({
  publisher,
  onChanged,
  clock,
}: ExecutionEventsOptions): ExecutionEvents {
  const budget = new TokenBuckets({ size: eventsPerSecond, refill: eventsPerSecond, maxBuckets: 1 });
  return {
    changed(execution, before) {
      if (before !== undefined && execution.job_id !== null) onChanged(execution, before);
      if (before !== undefined && execution.ended_at === null && !hasGoneOn(execution, before)) return;
      const nowMs = clock.monotonicMs();
      if (execution.job_id !== null && budget.tokens("all", nowMs) <= leftForCalls) return;
      if (!budget.tryTake("all", nowMs)) return;
      const { device_id: id, from_webhook: fromWebhook } = execution;
      const timestamp = clock.now().toISOString();
      publisher.execution_changed(
        { id, timestamp, execution: describeExecution(execution) },
        { fromWebhook },
      );
    },
    due: (deviceIds) => void publisher.due({ device_ids: [...deviceIds] }),
  };
}

/** Whether an update is in another stage, or has more of its file. */
function hasGoneOn(after: StoredExecution, before: StoredExecution): boolean {
  const isNews = after.stage !== before.stage || after.percent !== before.percent;
  return after.action.kind === "firmware" && isNews;
}
