import type { devices } from "@devmesh/contracts/devices";
import { type jobs, waitingCalls } from "@devmesh/contracts/jobs";
import type { Principal } from "@devmesh/contracts/principal";
import type { Clock } from "@devmesh/service-kit/clock";
import type { Client, Implementation } from "@devmesh/service-kit/rpc/implementation";
import { cutPage } from "@devmesh/service-kit/rpc/page";
import { isSortableId } from "@devmesh/service-kit/sortable-id";
import { cancelOfDevice } from "./executions/cancel-of-device.ts";
import { describeExecution } from "./executions/describe-execution.ts";
import type { ExecutionEvents } from "./executions/execution-events.ts";
import { nextExecution } from "./executions/execution-states.ts";
import type { FirmwareMethod } from "./firmware/firmware-files.ts";
import type { ExecutionStore, FoundExecution, StoredExecution } from "./store/execution-store.ts";

/** Executions of one page, unless the caller wants fewer. */
const pageSize = 500;

export interface JobsOptions {
  readonly store: ExecutionStore;
  readonly devices: Pick<Client<typeof devices>, "readPresence">;
  readonly events: ExecutionEvents;
  readonly newId: () => string;
  readonly clock: Clock;
}

/** The use cases of the contract but for those of firmware. */
export function createJobs(options: JobsOptions): Omit<Implementation<typeof jobs>, FirmwareMethod> {
  const { store, devices, events, newId, clock } = options;

  return {
    async createCall(input, ctx) {
      const { device_id, func, params, wait_ms, attempts, timeout_ms, created_by } = input;
      const bytes = params === undefined ? 0 : Buffer.byteLength(JSON.stringify(params));
      if (bytes > waitingCalls.paramsBytes) return ctx.fail("frame_too_large");
      // A device that is deleted between this and the insertion is dropped six seconds later (ADR 14).
      await devices.readPresence({ id: device_id }, ctx);
      const now = clock.now().getTime();
      const execution: StoredExecution = {
        id: newId(),
        device_id,
        action: { kind: "rpc", func, ...(params === undefined ? {} : { params }), timeout: timeout_ms },
        state: "queued",
        reason: null,
        attempts: 0,
        max_attempts: attempts,
        result: null,
        error: null,
        created_by,
        created_at: now,
        expires_at: now + wait_ms,
        sent_at: null,
        ended_at: null,
        due_at: null,
        not_before: 0,
        revision: 1,
      };
      const { ofDevice: most, ofPublicKey } = waitingCalls;
      const mostOfKind = created_by.kind === "public_key" ? ofPublicKey : most;
      if (!(await store.insert(execution, { most, mostOfKind }, ctx.signal)))
        return ctx.fail("too_much_waiting");
      events.changed(execution);
      events.due([device_id]);
      return describeExecution(execution);
    },

    async readExecution({ id, principal }, ctx) {
      const found = await store.find(id, ctx.signal);
      if (found === null || !mayRead(principal, found)) return ctx.fail("execution_not_found");
      return describeExecution(found.execution);
    },

    async listExecutions({ device_id, state, limit = pageSize, after }, ctx) {
      if (after !== undefined && !isSortableId(after)) return ctx.fail("cursor_invalid");
      await devices.readPresence({ id: device_id }, ctx);
      const most = Math.min(limit, pageSize);
      const listing = { device_id, limit: most + 1, ...(state && { state }), ...(after && { after }) };
      const found = await store.list(listing, ctx.signal);
      return cutPage(found.map(describeExecution), { limit: most, cursorOf: ({ id }) => id });
    },

    async cancelExecution({ id, force }, ctx) {
      for (;;) {
        const { execution } = (await store.find(id, ctx.signal)) ?? ctx.fail("execution_not_found");
        if (execution.state === "sent" && !force) return ctx.fail("execution_sent");
        const at = clock.now().getTime();
        const cancelled = nextExecution(execution, { kind: "cancelled", at, reason: "by_request" });
        if (cancelled === null) return ctx.fail("execution_ended");
        if (!(await store.change([cancelled], ctx.signal)).has(id)) continue;
        events.changed(cancelled);
        events.due([cancelled.device_id]);
        return describeExecution(cancelled);
      }
    },

    async dropDevice({ device_id }, ctx) {
      await cancelOfDevice(options, device_id, "device_deleted", ctx.signal);
      await store.unlist(device_id, ctx.signal);
      return {};
    },

    async readBacklog(_input, ctx) {
      const { queued, sent } = await store.countOpen(ctx.signal);
      return { waiting: queued + sent };
    },
  };
}

/** A public key reads what public keys of its device created. */
function mayRead(principal: Principal, { execution, listed }: FoundExecution): boolean {
  if (principal.kind === "master") return true;
  const { device_id, created_by } = execution;
  const isOwn = principal.kind === "public_key" && principal.device_id === device_id;
  return isOwn && listed && created_by.kind === "public_key";
}
