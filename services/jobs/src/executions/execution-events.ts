import type { jobEvents } from "@devmesh/contracts/jobs";
import type { Clock } from "@devmesh/service-kit/clock";
import type { Publisher } from "@devmesh/service-kit/events/publisher";
import { TokenBuckets } from "@devmesh/service-kit/token-buckets";
import type { StoredExecution } from "../store/execution-store.ts";
import { describeExecution } from "./describe-execution.ts";

/** More would drive the events of others out of the stream, which keeps those of an hour (ADR 20). */
const eventsPerSecond = 50;

/** Publishes changes of executions; best effort. */
export interface ExecutionEvents {
  /** Publishes an execution as it is now; beyond 50 a second nothing. */
  changed(execution: StoredExecution): void;
  /** Wakes the replica that sends. */
  due(deviceIds: readonly string[]): void;
}

export function createExecutionEvents(publisher: Publisher<typeof jobEvents>, clock: Clock): ExecutionEvents {
  const budget = new TokenBuckets({ size: eventsPerSecond, refill: eventsPerSecond, maxBuckets: 1 });
  return {
    changed(execution) {
      if (!budget.tryTake("all", clock.monotonicMs())) return;
      publisher.execution_changed({
        id: execution.device_id,
        timestamp: clock.now().toISOString(),
        execution: describeExecution(execution),
      });
    },
    due: (deviceIds) => void publisher.due({ device_ids: [...deviceIds] }),
  };
}
