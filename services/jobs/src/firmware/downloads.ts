import type { jobs } from "@devmesh/contracts/jobs";
import type { Clock } from "@devmesh/service-kit/clock";
import type { Implementation } from "@devmesh/service-kit/rpc/implementation";
import type { ExecutionEvents } from "../executions/execution-events.ts";
import { nextExecution } from "../executions/execution-states.ts";
import { stepTransferred } from "../executions/update-states.ts";
import type { ExecutionStore, StoredExecution } from "../store/execution-store.ts";
import type { FirmwareStore } from "../store/firmware-store.ts";
import { digestOfTicket } from "./tickets.ts";

export interface DownloadMethodsOptions {
  readonly store: Pick<ExecutionStore, "findByTicket" | "change">;
  readonly firmware: Pick<FirmwareStore, "find">;
  readonly events: Pick<ExecutionEvents, "changed">;
  readonly clock: Clock;
}

/** The methods of the contract about downloads by ticket. */
export type DownloadMethod = "openTicket" | "noteDownload";

/** What a ticket opens, and how much of it was sent. */
export function createDownloads({
  store,
  firmware,
  events,
  clock,
}: DownloadMethodsOptions): Pick<Implementation<typeof jobs>, DownloadMethod> {
  type Failing = { fail(reason: "ticket_unknown" | "ticket_ended"): never; readonly signal: AbortSignal };

  async function read(ticket: string, ctx: Failing) {
    const execution =
      (await store.findByTicket(digestOfTicket(ticket), ctx.signal)) ?? ctx.fail("ticket_unknown");
    const { action, ended_at } = execution;
    if (ended_at !== null || action.kind !== "firmware") return ctx.fail("ticket_ended");
    const file = await firmware.find(action.firmware_id, ctx.signal);
    return { execution, file: file ?? ctx.fail("ticket_ended") };
  }

  return {
    async openTicket({ ticket }, ctx) {
      const { execution, file } = await read(ticket, ctx);
      const begun = afterDownload(execution, 0, clock.now().getTime());
      if (begun !== null && (await store.change([begun], ctx.signal)).has(begun.id))
        events.changed(begun, execution);
      const { id, sha256, md5, size } = file;
      return { execution_id: execution.id, firmware: { id, sha256, md5, size } };
    },

    async noteDownload({ ticket, bytes }, ctx) {
      for (;;) {
        const { execution, file } = await read(ticket, ctx);
        const next = afterDownload(execution, Math.min(1, bytes / file.size), clock.now().getTime());
        if (next === null) return {};
        if (!(await store.change([next], ctx.signal)).has(next.id)) continue;
        events.changed(next, execution);
        return {};
      }
    },
  };
}

/** The execution once its device was sent a part of the file; null where that is no news. */
function afterDownload(execution: StoredExecution, part: number, at: number): StoredExecution | null {
  const percent = Math.floor(100 * part);
  // A download that begins again, or a late note, takes nothing back.
  if (execution.stage !== "transferring" || percent <= (execution.percent ?? -1)) return null;
  const step = percent === 100 ? stepTransferred(execution, at) : ({ kind: "progressed", percent } as const);
  return step.kind === "wait" ? null : nextExecution(execution, step);
}
