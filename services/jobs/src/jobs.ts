import type { devices } from "@devmesh/contracts/devices";
import { type jobs, waitingCalls } from "@devmesh/contracts/jobs";
import { checkNewJob, type JobTarget, jobLimits } from "@devmesh/contracts/model/job";
import type { JsonObject } from "@devmesh/contracts/model/json";
import { type Violation, ViolationList } from "@devmesh/contracts/model/violation";
import type { Principal } from "@devmesh/contracts/principal";
import type { Clock } from "@devmesh/service-kit/clock";
import type { CallContext } from "@devmesh/service-kit/rpc/context";
import type { Client, Implementation } from "@devmesh/service-kit/rpc/implementation";
import { cutPage, pageById } from "@devmesh/service-kit/rpc/page";
import { cancelOfDevice } from "./executions/cancel-of-device.ts";
import { describeExecution } from "./executions/describe-execution.ts";
import type { ExecutionEvents } from "./executions/execution-events.ts";
import { newExecution, nextExecution } from "./executions/execution-states.ts";
import type { DownloadMethod } from "./firmware/downloads.ts";
import type { FirmwareMethod } from "./firmware/firmware-files.ts";
import type { IsSigned } from "./firmware/signature.ts";
import { changeJob } from "./rollout/change-job.ts";
import { describeJob } from "./rollout/describe-job.ts";
import { createStoredJob } from "./rollout/rollout.ts";
import { readTarget } from "./rollout/target.ts";
import {
  type ExecutionStore,
  type FoundExecution,
  retryOfCalls,
  type StoredExecution,
} from "./store/execution-store.ts";
import type { FirmwareStore, StoredFirmware } from "./store/firmware-store.ts";
import type { StoredJob } from "./store/job-store.ts";

/** Executions or jobs of one page, unless the caller wants fewer. */
const pageSize = 500;

/**
 * For how long an attempt may turn out to have reached nobody, and how often the store is asked, in milliseconds: the
 * broker reports it at once, and the sender stores it with others.
 */
const undecidedMs = 3_000;
const undecidedEveryMs = 50;

/** Devices that a trial names. */
const sampleSize = 10;

export interface JobsOptions {
  readonly store: ExecutionStore;
  readonly firmware: Pick<FirmwareStore, "find">;
  readonly isSigned: IsSigned;
  /** Whether devices can download firmware: a public URL is set. */
  readonly canDownload: boolean;
  /** Removes what the shadow of a device offers for an execution that is about to end. */
  readonly withdraw: (execution: StoredExecution) => Promise<void>;
  readonly devices: Pick<Client<typeof devices>, "readPresence" | "readPresences" | "selectDevices">;
  readonly events: ExecutionEvents;
  /** Is given each job that was created or changed. */
  readonly jobChanged: (job: StoredJob, call: CallContext) => void;
  readonly newId: () => string;
  readonly clock: Clock;
}

/** The use cases of the contract but for those of firmware and its downloads. */
export function createJobs(
  options: JobsOptions,
): Omit<Implementation<typeof jobs>, FirmwareMethod | DownloadMethod> {
  const { store, firmware, isSigned, canDownload, withdraw, devices, events, jobChanged } = options;
  const { newId, clock } = options;

  async function checkTarget(
    { of_job }: JobTarget,
    refuse: (violations: Violation[]) => never,
    signal: AbortSignal,
  ): Promise<void> {
    if (of_job !== undefined && (await store.findJob(of_job, signal)) === null)
      refuse([{ pointer: "/target/of_job", detail: "is no job" }]);
  }

  /** Firmware that may be sent to devices: it is whole, and signed where it must be. */
  async function findFirmware(
    id: string,
    fail: { (reason: "firmware_not_found"): never; (reason: "job_invalid", details: Violation[]): never },
    signal: AbortSignal,
  ): Promise<StoredFirmware> {
    const found = (await firmware.find(id, signal)) ?? fail("firmware_not_found");
    const refuse = (detail: string) => fail("job_invalid", [{ pointer: "/action/firmware_id", detail }]);
    if (found.content === null) return refuse("has no content yet");
    return isSigned(found) ? found : refuse("has no signature of FIRMWARE_PUBLIC_KEY");
  }

  return {
    async createCall(input, ctx) {
      const { device_id, func, params, wait_ms, attempts, timeout_ms, created_by } = input;
      const bytes = params === undefined ? 0 : Buffer.byteLength(JSON.stringify(params));
      if (bytes > waitingCalls.paramsBytes) return ctx.fail("frame_too_large");
      // A device that is deleted between this and the insertion is dropped six seconds later (ADR 14).
      await devices.readPresence({ id: device_id }, ctx);
      const now = clock.now().getTime();
      const execution: StoredExecution = {
        ...newExecution,
        id: newId(),
        device_id,
        job_id: null,
        place: 0,
        action: { kind: "rpc", func, ...(params === undefined ? {} : { params }), timeout: timeout_ms },
        max_attempts: attempts,
        retry: retryOfCalls,
        created_by,
        created_at: now,
        expires_at: now + wait_ms,
        ...markOf(ctx),
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

    listExecutions: ({ device_id, state, ...page }, ctx) =>
      pageById(page, {
        most: pageSize,
        async read(asked) {
          await devices.readPresence({ id: device_id }, ctx);
          return await store.list({ device_id, ...asked, ...(state && { state }) }, ctx.signal);
        },
        describe: describeExecution,
        refuse: () => ctx.fail("cursor_invalid"),
      }),

    async cancelExecution({ id, force }, ctx) {
      const arrivedMs = clock.monotonicMs();
      for (;;) {
        const found = (await store.find(id, ctx.signal)) ?? ctx.fail("execution_not_found");
        const execution = { ...found.execution, ...markOf(ctx) };
        const at = clock.now().getTime();
        if (execution.state === "sent" && !force) {
          const isLate = clock.monotonicMs() - arrivedMs >= undecidedMs;
          if (isLate || !isUndecided(execution, at)) return ctx.fail("execution_sent");
          await clock.sleep(undecidedEveryMs, ctx.signal);
          continue;
        }
        const cancelled = nextExecution(execution, { kind: "cancelled", at, reason: "by_request" });
        if (cancelled === null) return ctx.fail("execution_ended");
        if (execution.state === "sent") await withdraw(execution);
        if (!(await store.change([cancelled], ctx.signal)).has(id)) continue;
        events.changed(cancelled, execution);
        events.due([cancelled.device_id]);
        return describeExecution(cancelled);
      }
    },

    async tryTarget({ target, firmware_id }, ctx) {
      await checkTarget(target, (found) => ctx.fail("job_invalid", found), ctx.signal);
      const file = firmware_id === undefined ? null : await findFirmware(firmware_id, ctx.fail, ctx.signal);
      const requires = file?.requires ?? null;
      const trial = { devices: 0, online: 0, not_found: 0, not_eligible: 0 };
      const sample: string[] = [];
      for (let cursor: string | null = null; ; ) {
        const { found, missing, next } = await readTarget(options, target, cursor, ctx);
        const { online } = await devices.readPresences({ ids: [...found] }, ctx);
        trial.devices += found.length + missing.length;
        trial.online += online.length;
        trial.not_found += missing.length;
        if (requires !== null && found.length > 0) {
          const asked = { where: requires, ids: [...found], limit: found.length };
          trial.not_eligible += found.length - (await devices.selectDevices(asked, ctx)).items.length;
        }
        sample.push(...found.slice(0, sampleSize - sample.length));
        if (next === null) return { ...trial, sample };
        cursor = next;
      }
    },

    async createJob({ job: asked, created_by: by }, ctx) {
      const violations = new ViolationList();
      checkNewJob(asked as JsonObject, violations);
      if (violations.any) return ctx.fail("job_invalid", violations.list);
      await checkTarget(asked.target, (found) => ctx.fail("job_invalid", found), ctx.signal);
      const { action } = asked;
      if (action.kind === "firmware") {
        await findFirmware(action.firmware_id, ctx.fail, ctx.signal);
        if (action.via !== "push" && !canDownload) {
          const detail = "needs OTA_PUBLIC_URL or PUBLIC_URL, where devices download";
          return ctx.fail("job_invalid", [{ pointer: "/action/via", detail }]);
        }
      }
      const created = createStoredJob(asked, { id: newId(), at: clock.now().getTime(), by });
      const job = { ...created, ...markOf(ctx) };
      const { open, continuous } = jobLimits;
      if (!(await store.insertJob(job, { open, continuous }, ctx.signal))) return ctx.fail("too_many_jobs");
      jobChanged(job, ctx);
      return describeJob(job);
    },

    listJobs: ({ state, ...page }, ctx) =>
      pageById(page, {
        most: pageSize,
        read: (asked) => store.listJobs({ ...asked, ...(state && { state }) }, ctx.signal),
        describe: describeJob,
        refuse: () => ctx.fail("cursor_invalid"),
      }),

    async readJob({ id }, ctx) {
      return describeJob((await store.findJob(id, ctx.signal)) ?? ctx.fail("job_not_found"));
    },

    async changeJob({ id, patch, by }, ctx) {
      const at = clock.now().getTime();
      const changed = await changeJob(store, id, patch, { at, by }, ctx.signal);
      if (typeof changed === "string") return ctx.fail(changed);
      jobChanged(changed, ctx);
      return describeJob(changed);
    },

    async listJobExecutions({ id, state, limit = pageSize, after }, ctx) {
      const place = after === undefined ? -1 : Number(after);
      if (!Number.isFinite(place) || after?.trim() === "") return ctx.fail("cursor_invalid");
      if ((await store.findJob(id, ctx.signal)) === null) return ctx.fail("job_not_found");
      const most = Math.min(limit, pageSize);
      const listing = { job_id: id, after: place, limit: most + 1, ...(state && { state }) };
      const found = await store.listOfJob(listing, ctx.signal);
      const { items, next } = cutPage(
        found.map((one) => ({ place: String(one.place), shown: describeExecution(one) })),
        { limit: most, cursorOf: (one) => one.place },
      );
      return { next, items: items.map(({ shown }) => shown) };
    },

    async dropDevice({ device_id }, ctx) {
      await cancelOfDevice(options, device_id, "device_deleted", ctx);
      await store.unlist(device_id, ctx.signal);
      return {};
    },

    async readBacklog(_input, ctx) {
      const { queued, sent } = await store.countOpen(ctx.signal);
      return { waiting: queued + sent };
    },
  };
}

/** Whether an execution that is `sent` may not have been sent: where nobody listens, it becomes one that waits. */
function isUndecided({ stage, sent_at }: StoredExecution, at: number): boolean {
  return (stage === null || stage === "preparing") && at - (sent_at ?? 0) < undecidedMs;
}

/** The mark of what a receiver of webhooks makes or ends. */
const markOf = ({ fromWebhook }: CallContext) => fromWebhook && { from_webhook: fromWebhook };

/** A public key reads what public keys of its device created. */
function mayRead(principal: Principal, { execution, listed }: FoundExecution): boolean {
  if (principal.kind === "master") return true;
  const { device_id, created_by } = execution;
  const isOwn = principal.kind === "public_key" && principal.device_id === device_id;
  return isOwn && listed && created_by.kind === "public_key";
}
