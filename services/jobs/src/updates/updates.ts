import type { devices } from "@devmesh/contracts/devices";
import { lengthOf } from "@devmesh/contracts/model/duration";
import type { rpcBridge } from "@devmesh/contracts/rpc-bridge";
import type { Clock } from "@devmesh/service-kit/clock";
import type { Logger } from "@devmesh/service-kit/logger";
import { createCallContext } from "@devmesh/service-kit/rpc/context";
import type { Client } from "@devmesh/service-kit/rpc/implementation";
import { RunningTasks } from "@devmesh/service-kit/running-tasks";
import { setNewest } from "@devmesh/service-kit/set-newest";
import type { ExecutionEvents } from "../executions/execution-events.ts";
import { type ExecutionEvent, nextExecution } from "../executions/execution-states.ts";
import type { IsSigned } from "../firmware/signature.ts";
import type { OpenJobs } from "../rollout/open-jobs.ts";
import { createDeviceCalls } from "../sending/device-calls.ts";
import type { CallSender } from "../sending/sender.ts";
import type { ExecutionStore, StoredExecution } from "../store/execution-store.ts";
import type { FirmwareStore, StoredFirmware } from "../store/firmware-store.ts";
import { type ActiveUpdate, ActiveUpdates } from "./active-updates.ts";
import { createPieces } from "./pieces.ts";
import { createShadowOffers } from "./shadow-offers.ts";
import { createUpdateSteps } from "./update-steps.ts";
import { createVersionReader } from "./version-reader.ts";

/** Updates that are looked at together. */
const maxLooks = 200;

/** Executions of a page. */
const pageSize = 500;

/** When an update is tried again whose device gets another one, in milliseconds. */
const busyMs = 5_000;

/** Ready firmware that is kept in memory; it never changes. */
const keptFirmware = 1_000;

/** How long `devices` may take to check a condition, in milliseconds. */
const selectMs = 10_000;

export interface UpdatesOptions {
  readonly store: Pick<ExecutionStore, "change" | "find" | "listOfJob">;
  readonly firmware: Pick<FirmwareStore, "find" | "readPiece">;
  readonly isSigned: IsSigned;
  readonly devices: Pick<
    Client<typeof devices>,
    "selectDevices" | "readDevice" | "readPresence" | "patchDevice"
  >;
  readonly bridge: Pick<Client<typeof rpcBridge>, "attemptCall">;
  readonly open: OpenJobs;
  readonly settle: CallSender["settle"];
  readonly tried: CallSender["tried"];
  readonly events: Pick<ExecutionEvents, "changed">;
  /** Whether this replica may send. */
  readonly mayBegin: () => boolean;
  /** Devices that are pushed a file at a time. */
  readonly maxPushes: number;
  /** Where a ticket is fetched. */
  readonly urlOf: (ticket: string) => string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** Updates of firmware by jobs, in the replica that leads; what they know is in the store (ADR 34). */
export function createUpdates(options: UpdatesOptions) {
  const { store, isSigned, devices, open, settle, tried, events, mayBegin, maxPushes } = options;
  const { clock, log, signal } = options;
  const active = new ActiveUpdates(clock);
  const running = new RunningTasks();
  const known = new Map<string, StoredFirmware>();
  let isStopping = false;
  const now = () => clock.now().getTime();
  const mayGoOn = () => mayBegin() && !isStopping;

  const call = createDeviceCalls({ ...options, quiet: true });
  const versions = createVersionReader({ ...options, call });
  const offers = createShadowOffers({ ...options, readDevice: versions.readDevice });
  const steps = createUpdateSteps({
    active,
    call,
    versions,
    offers,
    read: createPieces(options.firmware, signal),
    firmwareOf,
    urlOf: options.urlOf,
    happened,
    enqueue,
    inBackground: (work) => running.add(logged(work)),
    tried,
    mayGoOn,
    clock,
    signal,
  });

  function logged(work: Promise<void>): Promise<void> {
    return work.catch((err: unknown) => {
      if (!signal.aborted) log.warn({ err }, "a step of an update failed and is tried again");
    });
  }

  async function firmwareOf(id: string): Promise<StoredFirmware | null> {
    const firmware = known.get(id) ?? (await options.firmware.find(id, signal));
    if (firmware === null || firmware.content === null) return null;
    setNewest(known, id, firmware, keptFirmware);
    return firmware;
  }

  /** Stores what happened to an update, also where a download or another replica has changed it meanwhile. */
  async function happened(one: ActiveUpdate, event: ExecutionEvent): Promise<boolean> {
    for (;;) {
      if (one.hasLeft) return false;
      const before = one.execution;
      const [after] = await settle([[before, event]]);
      if (after) return true;
      const found = await store.find(before.id, signal);
      const isOwn = found?.execution.state === "sent" && found.execution.attempts === before.attempts;
      if (!found || !isOwn) {
        active.leave(one);
        return false;
      }
      // Its state does not allow the event.
      if (found.execution.revision === before.revision) return false;
      active.changed(found.execution);
    }
  }

  function enqueue(one: ActiveUpdate, work: () => Promise<void>): void {
    one.pending++;
    one.queue = logged(one.queue.then(work)).finally(() => {
      one.pending--;
    });
    running.add(one.queue);
  }

  /** Those whose devices meet what their firmware requires; the others end unsent. */
  async function onlyEligible(due: readonly StoredExecution[]): Promise<StoredExecution[]> {
    const eligible: StoredExecution[] = [];
    for (const [firmware, executions] of await byFirmware(due)) {
      if (firmware.requires === null) {
        eligible.push(...executions);
        continue;
      }
      using context = createCallContext({ timeoutMs: selectMs, signal, clock });
      const ids = executions.map(({ device_id }) => device_id);
      const asked = { where: firmware.requires, ids, limit: ids.length };
      const meeting = new Set((await devices.selectDevices(asked, context)).items);
      eligible.push(...executions.filter(({ device_id }) => meeting.has(device_id)));
      const others = executions.filter(({ device_id }) => !meeting.has(device_id));
      await settle(others.map((one) => [one, { kind: "refused", at: now(), reason: "not_eligible" }]));
    }
    return eligible;
  }

  async function byFirmware(
    due: readonly StoredExecution[],
  ): Promise<Map<StoredFirmware, StoredExecution[]>> {
    const found = new Map<StoredFirmware, StoredExecution[]>();
    for (const execution of due) {
      const { action } = execution;
      if (action.kind !== "firmware") continue;
      const firmware = await firmwareOf(action.firmware_id);
      const reason = firmware === null ? "transfer_failed" : "not_eligible";
      // The key may be set after the file was declared.
      if (firmware === null || !isSigned(firmware))
        await settle([[execution, { kind: "refused", at: now(), reason }]]);
      else found.set(firmware, [...(found.get(firmware) ?? []), execution]);
    }
    return found;
  }

  /** Looks at the updates whose time has come. */
  function look(): void {
    if (!mayGoOn()) return;
    const nowMs = clock.monotonicMs();
    const idle = active.all.filter(({ pending, lookAtMs }) => pending === 0 && lookAtMs <= nowMs);
    for (const one of idle.slice(0, maxLooks)) enqueue(one, () => steps.look(one));
  }

  return {
    /** Begins updates of devices that may listen. */
    async begin(due: readonly StoredExecution[]): Promise<void> {
      const [busy, free] = [[], []] as [StoredExecution[], StoredExecution[]];
      const taken = new Set<string>();
      for (const one of due) {
        const isBusy = active.hasDevice(one.device_id) || taken.has(one.device_id);
        taken.add(one.device_id);
        (isBusy ? busy : free).push(one);
      }
      // Not held up by an update that is confirmed: calls after it go on.
      await settle(busy.map((one) => [one, { kind: "postponed", until: now() + busyMs }]));
      const at = now();
      const claims = (await onlyEligible(free)).flatMap((before) => {
        const { action } = before;
        if (action.kind !== "firmware") return [];
        const claimed = nextExecution(before, { kind: "claimed", at, dueAt: at + lengthOf(action.timeout) });
        return claimed === null ? [] : [{ before, claimed }];
      });
      if (claims.length === 0 || !mayGoOn()) return;
      const all = claims.map(({ claimed }) => claimed);
      const won = await store.change(all, signal);
      for (const { before, claimed } of claims) {
        if (!won.has(claimed.id)) continue;
        active.begin(claimed);
        events.changed(claimed, before);
      }
      look();
    },

    /** Looks at updates; those of a replica that leads no more are forgotten. */
    async look(): Promise<void> {
      if (!mayBegin()) for (const one of active.all) active.leave(one);
      look();
    },

    /** Takes up all that are sent, which another replica has begun or changed. */
    async takeUp(): Promise<void> {
      if (!mayGoOn()) return;
      const beganMs = clock.monotonicMs();
      const seen = new Set<string>();
      for (const { job, counts } of open.all) {
        if (job.action.kind !== "firmware" || counts.sent === 0) continue;
        for (let after: number | undefined = -1; after !== undefined; ) {
          const listing = { job_id: job.id, state: "sent", after, limit: pageSize } as const;
          const page = await store.listOfJob(listing, signal);
          for (const one of page) seen.add(one.id);
          if (mayGoOn()) for (const one of page) active.adopt(one);
          after = page.length < pageSize ? undefined : page.at(-1)?.place;
        }
      }
      for (const one of active.all)
        if (one.beganMs < beganMs && !seen.has(one.execution.id)) active.leave(one);
    },

    /** An execution was stored by this replica. */
    changed: (after: StoredExecution) => active.changed(after),
    online: (deviceId: string) => active.online(deviceId),
    updated: (deviceId: string) => active.updated(deviceId),

    get awaitsReports(): boolean {
      return active.awaitsReports;
    },

    /** How many more devices may be pushed a file. */
    get pushRoom(): number {
      return Math.max(0, maxPushes - active.pushes);
    },

    /** What becomes of an update whose time is over. */
    async overdue(execution: StoredExecution): Promise<ExecutionEvent> {
      const one = active.adopt(execution);
      return one === null ? { kind: "unanswered", at: now() } : await steps.overdue(one);
    },

    /** Removes what the shadow of a device offers for an execution that is about to end. */
    withdraw: offers.withdraw,

    /** Sends nothing more, and resolves when what is under way has ended. */
    async stop(): Promise<void> {
      isStopping = true;
      await running.settled();
    },
  };
}
