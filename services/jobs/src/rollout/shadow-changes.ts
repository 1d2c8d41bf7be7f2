import type { devices } from "@devmesh/contracts/devices";
import type { Action } from "@devmesh/contracts/model/action";
import type { Device } from "@devmesh/contracts/model/device";
import { lengthOf } from "@devmesh/contracts/model/duration";
import { isJsonObject, type JsonObject } from "@devmesh/contracts/model/json";
import { Shadow } from "@devmesh/contracts/model/shadow";
import type { Clock } from "@devmesh/service-kit/clock";
import { isReason } from "@devmesh/service-kit/errors";
import { createCallContext } from "@devmesh/service-kit/rpc/context";
import type { Client } from "@devmesh/service-kit/rpc/implementation";
import { z } from "zod";
import type { ExecutionEvents } from "../executions/execution-events.ts";
import { type ExecutionEvent, nextExecution } from "../executions/execution-states.ts";
import type { CallSender } from "../sending/sender.ts";
import type { ExecutionStore, StoredExecution } from "../store/execution-store.ts";
import { mayBegin, type OpenJob, type OpenJobs, roomIn } from "./open-jobs.ts";

/** Shadows that are changed at a time, and how long one may take, in milliseconds. */
const pageSize = 50;
const patchMs = 5_000;

/** How long after its claim a change counts as not made, in milliseconds: it is made again, since twice is once. */
const crashMarginMs = 10_000;

/** Deltas that are read at a time, and the pause after them, in milliseconds. */
const deltaPageSize = 100;
const pauseMs = 1_000;

/** How long reports gather, in milliseconds: longer than it takes to store that one is awaited. */
const gatherMs = 400;

type ShadowAction = Extract<Action, { readonly kind: "shadow" }>;
type ShadowJob = OpenJob & { readonly job: { readonly action: ShadowAction } };

export interface ShadowChangesOptions {
  readonly store: Pick<ExecutionStore, "listOfJob" | "findOfJob" | "change">;
  readonly devices: Pick<Client<typeof devices>, "patchDevice" | "readDelta">;
  readonly open: OpenJobs;
  readonly settle: CallSender["settle"];
  readonly events: Pick<ExecutionEvents, "changed">;
  readonly leads: () => boolean;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** What is left of an answer of `patchDevice`. */
const Patched = z.object({ shadow: Shadow.pick({ state: true }) });

/** Changes of shadows by jobs: they need no device to be awake, and succeed once it reports. */
export function createShadowChanges(options: ShadowChangesOptions) {
  const { store, devices, open, settle, events, leads, clock, signal } = options;
  const now = () => clock.now().getTime();
  const reported = new Map<string, Set<string>>();

  const jobs = (): ShadowJob[] => open.all.filter(isShadowJob);
  const awaiting = () => jobs().filter(({ counts }) => counts.sent > 0);

  async function patch(execution: StoredExecution, action: ShadowAction): Promise<ExecutionEvent> {
    const { device_id: id, from_webhook: fromWebhook } = execution;
    using call = createCallContext({ timeoutMs: patchMs, signal, fromWebhook, clock });
    const principal = { kind: "master" } as const;
    // What zod gives of a patch is JSON.
    const { labels, ...shadow } = action.patch as JsonObject;
    const patch = { ...(Object.keys(shadow).length > 0 && { shadow }), ...(labels && { labels }) };
    try {
      const { device } = await devices.patchDevice({ id, principal, patch }, call);
      const { state } = Patched.parse(device).shadow;
      const desired = action.wait_for_report ? action.patch.state?.desired : undefined;
      if (desired === undefined || isReported(desired, state.delta ?? {}))
        return { kind: "reported", at: now() };
      return { kind: "patched", dueAt: now() + lengthOf(action.timeout) };
    } catch (error) {
      if (isReason(error, "device_not_found"))
        return { kind: "refused", at: now(), reason: "device_not_found" };
      if (isReason(error, "invalid_device") || isReason(error, "shadow_too_large"))
        return { kind: "refused", at: now(), reason: "patch_refused" };
      return { kind: "put_back" };
    }
  }

  /** Changes the shadows of a page of a job; false where there was none, or `devices` is away. */
  async function sendPage(one: ShadowJob, after: number): Promise<number | null> {
    const { job } = one;
    const limit = Math.min(pageSize, roomIn(one));
    if (limit === 0 || !leads() || !mayBegin(one)) return null;
    const listing = { job_id: job.id, state: "queued", after, upTo: job.released_to, limit } as const;
    const page = await store.listOfJob(listing, signal);
    const at = now();
    const claims = page
      .filter(({ not_before }) => not_before <= at)
      .flatMap((before) => {
        const dueAt = at + patchMs + crashMarginMs;
        const claimed = nextExecution(before, { kind: "claimed", at, dueAt });
        return claimed === null ? [] : [{ before, claimed }];
      });
    const won = await store.change(
      claims.map(({ claimed }) => claimed),
      signal,
    );
    const sent = claims.filter(({ claimed }) => won.has(claimed.id));
    for (const { before, claimed } of sent) events.changed(claimed, before);
    const happened = await Promise.all(
      sent.map(async ({ claimed }) => [claimed, await patch(claimed, job.action)] as const),
    );
    await settle(happened);
    const isAway = happened.some(([, { kind }]) => kind === "put_back");
    return page.length < limit || isAway ? null : (page.at(-1)?.place ?? null);
  }

  async function readsReported({ device_id: id }: StoredExecution, desired: JsonObject): Promise<boolean> {
    using call = createCallContext({ timeoutMs: patchMs, signal, clock });
    return isReported(desired, (await devices.readDelta({ id }, call)).state);
  }

  async function storeReported(): Promise<void> {
    const gathered = [...reported];
    reported.clear();
    for (const [jobId, ids] of gathered) {
      const found = await store.findOfJob(jobId, [...ids], signal);
      await settle(found.filter(isAwaited).map((one) => [one, { kind: "reported", at: now() }]));
    }
  }

  return {
    /** Changes the shadows of all devices that jobs let go. */
    async send(): Promise<void> {
      for (const one of jobs())
        for (let after: number | null = -1; after !== null; ) after = await sendPage(one, after);
    },

    /** Whether the reports of some device are awaited. */
    get awaits(): boolean {
      return awaiting().length > 0;
    },

    /** A device has changed: what is awaited of it may be reported. */
    updated({ id, shadow }: Device): void {
      for (const { job } of awaiting()) {
        const desired = job.action.patch.state?.desired;
        if (desired === undefined || !isReported(desired, shadow.state.delta ?? {})) continue;
        if (reported.size === 0)
          clock.schedule(gatherMs, () => {
            // A report that is lost here is found by the look at deltas.
            void storeReported().catch(() => undefined);
          });
        reported.set(job.id, (reported.get(job.id) ?? new Set()).add(id));
      }
    },

    /** Reads the deltas of all devices that have not reported: an event may be lost. */
    async readDeltas(): Promise<void> {
      for (const { job } of awaiting()) {
        const desired = job.action.patch.state?.desired;
        for (let after = -1; desired !== undefined && leads(); ) {
          const listing = { job_id: job.id, state: "sent", after, limit: deltaPageSize } as const;
          const page = await store.listOfJob(listing, signal);
          const looked = await Promise.all(
            page.filter(isAwaited).map(async (one) => ((await readsReported(one, desired)) ? [one] : [])),
          );
          await settle(looked.flat().map((one) => [one, { kind: "reported", at: now() }]));
          if (page.length < deltaPageSize) break;
          after = page.at(-1)?.place ?? Number.MAX_VALUE;
          await clock.sleep(pauseMs, signal);
        }
      }
    },

    /** What becomes of a change whose time is over. */
    async overdue(execution: StoredExecution): Promise<ExecutionEvent> {
      const { action } = execution;
      const desired = action.kind === "shadow" ? action.patch.state?.desired : undefined;
      if (!isAwaited(execution)) return { kind: "put_back" };
      const isDone = desired === undefined || (await readsReported(execution, desired));
      return { kind: isDone ? "reported" : "unanswered", at: now() };
    },
  };
}

function isShadowJob(open: OpenJob): open is ShadowJob {
  return open.job.action.kind === "shadow";
}

const isAwaited = ({ state, stage }: StoredExecution) => state === "sent" && stage === "reporting";

/** Whether none of what a patch sets still differs from what the device reports. */
export function isReported(desired: JsonObject, delta: JsonObject): boolean {
  return Object.entries(desired).every(([name, value]) => {
    const differs = Object.hasOwn(delta, name) ? delta[name] : undefined;
    if (value === null || differs === undefined) return true;
    return isJsonObject(value) && isJsonObject(differs) && isReported(value, differs);
  });
}
