import { waitingCalls } from "@devmesh/contracts/jobs";
import type { ExecutionReason } from "@devmesh/contracts/model/execution";
import { jobLimits } from "@devmesh/contracts/model/job";
import type { Clock } from "@devmesh/service-kit/clock";
import type { CallContext } from "@devmesh/service-kit/rpc/context";
import type { ExecutionStore, StoredExecution } from "../store/execution-store.ts";
import type { ExecutionEvents } from "./execution-events.ts";
import { nextExecution } from "./execution-states.ts";

interface CancelOptions {
  readonly store: Pick<ExecutionStore, "listOpen" | "change">;
  readonly events: Pick<ExecutionEvents, "changed">;
  readonly clock: Clock;
}

/** Executions of one commit: more than a device can have open, with one of each job. */
const batchSize = jobLimits.open + waitingCalls.ofDevice + 1;

/** Cancels the queued and sent executions of a device that are meant, until none is left. */
export async function cancelOfDevice(
  { store, events, clock }: CancelOptions,
  deviceId: string,
  reason: ExecutionReason,
  { signal, fromWebhook }: Pick<CallContext, "signal" | "fromWebhook">,
  isMeant: (execution: StoredExecution) => boolean = () => true,
): Promise<void> {
  for (;;) {
    const open = (await store.listOpen(deviceId, batchSize, signal)).filter(isMeant);
    if (open.length === 0) return;
    const at = clock.now().getTime();
    const mark = fromWebhook && { from_webhook: fromWebhook };
    const next = open.flatMap((one) => {
      const ended = nextExecution(one, { kind: "cancelled", at, reason });
      return ended === null ? [] : [{ ...ended, ...mark }];
    });
    const cancelled = await store.change(next, signal);
    const before = new Map(open.map((one) => [one.id, one]));
    for (const one of next) if (cancelled.has(one.id)) events.changed(one, before.get(one.id));
  }
}
