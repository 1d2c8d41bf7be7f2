import type { FirmwareAction } from "@devmesh/contracts/model/action";
import { lengthOf } from "@devmesh/contracts/model/duration";
import { isJsonObject } from "@devmesh/contracts/model/json";
import type { Clock } from "@devmesh/service-kit/clock";
import { isReason } from "@devmesh/service-kit/errors";
import type { ExecutionEvent } from "../executions/execution-states.ts";
import {
  commitTimeoutMs,
  nextReadingAt,
  stepAfter,
  stepBefore,
  stepConnected,
  stepGone,
  stepTransferred,
  stepUncommitted,
  type UpdateGoal,
  type UpdateStep,
} from "../executions/update-states.ts";
import { digestOfTicket, newTicket } from "../firmware/tickets.ts";
import { type CallAnswer, type DeviceCalls, isDone } from "../sending/device-calls.ts";
import type { StoredFirmware } from "../store/firmware-store.ts";
import type { ActiveUpdate, ActiveUpdates } from "./active-updates.ts";
import type { ReadBytes } from "./pieces.ts";
import { push } from "./push.ts";
import { otaReportIn, type ShadowOffers } from "./shadow-offers.ts";
import type { ReadVersion, VersionReader } from "./version-reader.ts";

/** How long a device may take to answer `OTA.Update`, which real ones answer at its end, in milliseconds. */
const updateMs = 60_000;

/** The function that commits firmware, unless an action names another one. */
const otaCommit = "OTA.Commit";

/** How often the percentage of a push is stored at least and at most, in points and milliseconds. */
const storedPoints = 10;
const storedEveryMs = 5_000;

/** When a device that has not begun to fetch is asked by the next replica, after its begin; in milliseconds. */
const fetchMs = 30_000;

/** When a look that fails is repeated, in milliseconds. */
const failedMs = 5_000;

/** Ready firmware, and the goal of its update. */
interface Target {
  readonly firmware: StoredFirmware;
  readonly goal: UpdateGoal;
}

/** What a device says of its firmware: nothing that is known, nothing in time, or it was not asked as it is away. */
type BootState = "committed" | "uncommitted" | "unknown" | "silent" | "away";

export interface UpdateStepsOptions {
  readonly active: ActiveUpdates;
  readonly call: DeviceCalls;
  readonly versions: VersionReader;
  readonly offers: ShadowOffers;
  readonly read: ReadBytes;
  /** The firmware; null where it is gone. */
  readonly firmwareOf: (id: string) => Promise<StoredFirmware | null>;
  /** Where a ticket is fetched. */
  readonly urlOf: (ticket: string) => string;
  /** Stores what happened; false where the update has left meanwhile. */
  readonly happened: (active: ActiveUpdate, event: ExecutionEvent) => Promise<boolean>;
  /** Does something with an update after all else that is done with it. */
  readonly enqueue: (active: ActiveUpdate, work: () => Promise<void>) => void;
  /** Runs what nobody waits for, until the service stops. */
  readonly inBackground: (work: Promise<void>) => void;
  /** A device was called, or nobody listened. */
  readonly tried: (deviceId: string, isListening: boolean) => void;
  readonly mayGoOn: () => boolean;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** What is done with an update in each of its stages. */
export function createUpdateSteps(options: UpdateStepsOptions) {
  const {
    active: updates,
    call,
    versions,
    offers,
    read,
    firmwareOf,
    urlOf,
    happened,
    tried,
    clock,
  } = options;
  const now = () => clock.now().getTime();

  /** Stores an end; before it the offer in the shadow is removed, so that no crash leaves it there. */
  async function end(active: ActiveUpdate, event: ExecutionEvent): Promise<void> {
    await offers.withdraw(active.execution);
    await happened(active, event);
  }

  async function take(active: ActiveUpdate, step: UpdateStep): Promise<void> {
    if (step.kind === "wait" || step.kind === "commit") return;
    if (step.kind === "progressed") await happened(active, step);
    else await end(active, step);
  }

  /** An attempt of which no frame has left: the device is tried again when it listens. */
  async function putBack(active: ActiveUpdate, outcome: CallAnswer["outcome"] | "away"): Promise<void> {
    if (outcome === "nobody_listens" || outcome === "away") tried(active.execution.device_id, false);
    await happened(active, { kind: "put_back" });
  }

  async function prepare(active: ActiveUpdate, { firmware, goal }: Target): Promise<void> {
    const { action, execution } = active;
    const version = await versions.readVersion(execution.device_id, action);
    switch (version.kind) {
      case "unreadable":
        await happened(active, { kind: "update_failed", at: now(), reason: "version_unreadable" });
        return;
      case "silent":
        await happened(active, { kind: "unanswered", at: now() });
        return;
      case "away":
      case "unknown":
        await putBack(active, version.kind === "away" ? "away" : "unknown");
        return;
      case "read":
        break;
    }
    tried(execution.device_id, true);
    const step = stepBefore(version, goal);
    if (step.kind !== "progressed") {
      // An attempt before, or a job that was cancelled, may have left firmware that goes back without a commit.
      const commits = version.online && commitOf(action) === otaCommit;
      const boot = commits ? await readBootState(active) : "unknown";
      if (boot === "away") return await putBack(active, boot);
      return await take(active, boot === "uncommitted" ? stepUncommitted(version, goal) : step);
    }
    active.isResumed = false;
    if (action.via === "push") {
      if (await happened(active, step)) await pushFile(active, { firmware, goal });
      return;
    }
    const ticket = await giveTicket(active, step);
    if (ticket === null) return;
    if (action.via === "shadow") await offer(active, firmware, ticket);
    else options.inBackground(askToFetch(active, ticket));
  }

  /** Gives the attempt a ticket; null where it has left. */
  async function giveTicket(
    active: ActiveUpdate,
    step: Extract<UpdateStep, { readonly kind: "progressed" }>,
  ): Promise<string | null> {
    const ticket = newTicket();
    return (await happened(active, { ...step, ticket: digestOfTicket(ticket) })) ? ticket : null;
  }

  async function askToFetch(active: ActiveUpdate, ticket: string): Promise<void> {
    const { action, execution } = active;
    const commit_timeout = Math.ceil(commitTimeoutMs(action) / 1_000);
    const asked = { url: urlOf(ticket), commit_timeout };
    const answer = await call(execution.device_id, "OTA.Update", asked, updateMs);
    const at = now();
    options.enqueue(active, async () => {
      if (isDone(answer)) return await take(active, stepTransferred(active.execution, at));
      switch (answer.outcome) {
        case "error":
          await happened(active, {
            kind: "update_failed",
            at,
            reason: "transfer_failed",
            error: answer.error,
          });
          return;
        case "no_such_function":
          await happened(active, { kind: "update_failed", at, reason: "function_not_found" });
          return;
        case "too_large":
          await happened(active, { kind: "refused", at, reason: "frame_too_large" });
          return;
        default:
          // Without an answer the version decides.
          if (!answer.sent) await putBack(active, answer.outcome);
      }
    });
  }

  async function offer(active: ActiveUpdate, firmware: StoredFirmware, ticket: string): Promise<void> {
    try {
      await offers.offer(active.execution, firmware, urlOf(ticket));
    } catch (error) {
      const at = now();
      if (isReason(error, "device_not_found"))
        await happened(active, { kind: "refused", at, reason: "device_not_found" });
      else if (isReason(error, "invalid_device") || isReason(error, "shadow_too_large"))
        await happened(active, { kind: "refused", at, reason: "patch_refused" });
      // It may have been made: the next look asks the shadow.
      else active.isResumed = true;
    }
  }

  async function pushFile(active: ActiveUpdate, { firmware, goal }: Target): Promise<void> {
    const { action } = active;
    const { device_id } = active.execution;
    const { size, content } = firmware;
    const isResumed = active.isResumed;
    if (isResumed) {
      // The replica before may have died with the answer to the end of the file.
      const version = await versions.readVersion(device_id, action);
      const isThere = version.kind === "unreadable" || (version.kind === "read" && version.online);
      if (!isThere) return;
      if (version.kind === "read" && version.version === goal.version)
        return await take(active, stepTransferred(active.execution, now()));
      // One that was read from a list may have changed since.
      if (!(await happened(active, { kind: "progressed" }))) return;
      active.isResumed = false;
    }
    let storedMs = clock.monotonicMs();
    let noted = active.execution.percent ?? 0;
    let stored = Promise.resolve(true);
    const pushed = await push({
      action,
      size,
      isResumed,
      call: (method, params) => call(device_id, method, params),
      read: (from, length) => read(content ?? "", from, length),
      async written(bytes) {
        const percent = Math.floor((bytes * 100) / size);
        const points = percent - noted;
        const isLate = clock.monotonicMs() - storedMs >= storedEveryMs;
        if (points < (isLate ? 1 : storedPoints)) return true;
        if (!(await stored)) return false;
        storedMs = clock.monotonicMs();
        noted = percent;
        // The next piece does not wait for it; the next percentage does.
        stored = happened(active, { kind: "progressed", percent });
        stored.catch(() => undefined);
        return true;
      },
      goesOn: () => !active.hasLeft && options.mayGoOn(),
      clock,
      signal: options.signal,
    });
    if (!(await stored)) return;
    const at = now();
    switch (pushed.kind) {
      case "written":
        return await take(active, stepTransferred(active.execution, at));
      case "unsent":
        return await putBack(active, "nobody_listens");
      case "unanswered":
        await happened(active, { kind: "unanswered", at });
        return;
      case "too_large":
        await happened(active, { kind: "refused", at, reason: "frame_too_large" });
        return;
      case "failed":
        await happened(active, {
          kind: "update_failed",
          at,
          reason: "transfer_failed",
          error: pushed.error,
        });
        return;
      case "no_such_function":
        await happened(active, { kind: "update_failed", at, reason: "function_not_found" });
        return;
      case "stopped":
        return;
    }
  }

  /** Looks how far a device is that fetches the file by itself. */
  async function watch(active: ActiveUpdate, { firmware, goal }: Target): Promise<void> {
    const { action, execution } = active;
    if (action.via === "shadow") {
      if (active.isResumed) {
        active.isResumed = false;
        if (!(await offers.isOffered(execution))) {
          // The replica that was to offer it has died: the device knows no ticket.
          const ticket = await giveTicket(active, { kind: "progressed" });
          if (ticket !== null) await offer(active, firmware, ticket);
          return;
        }
      }
      const device = await versions.readDevice(execution.device_id);
      const { percent, error } = otaReportIn(device, execution.sent_at ?? 0);
      const at = now();
      if (error !== null)
        return await end(active, { kind: "update_failed", at, reason: "transfer_failed", error });
      if (percent === 100) return await take(active, stepTransferred(execution, at));
      if (percent !== null && percent > (execution.percent ?? -1))
        await happened(active, { kind: "progressed", percent });
    }
    const version = await versions.readVersion(execution.device_id, action);
    if (version.kind !== "read") return;
    const isUnasked = action.via === "url" && active.isResumed && active.execution.percent === null;
    if (isUnasked && version.version === execution.update?.from) {
      if (version.at - (execution.sent_at ?? 0) < fetchMs) return;
      active.isResumed = false;
      const ticket = await giveTicket(active, { kind: "progressed" });
      if (ticket !== null) options.inBackground(askToFetch(active, ticket));
      return;
    }
    await take(active, stepAfter(active.execution, version, goal));
  }

  async function confirm(active: ActiveUpdate, { goal }: Target): Promise<void> {
    const { execution, action } = active;
    if (action.via === "shadow" && execution.stage === "rebooting" && !execution.update?.gone) {
      // Some devices check the file, and find it wrong, after the gateway has sent all of it.
      const device = await versions.readDevice(execution.device_id);
      const { error } = otaReportIn(device, execution.sent_at ?? 0);
      if (error !== null)
        return await end(active, { kind: "update_failed", at: now(), reason: "transfer_failed", error });
    }
    const connectedAt = await versions.readConnectedAt(execution.device_id);
    if (connectedAt !== null) await take(active, stepConnected(execution, connectedAt));
    const version = await versions.readVersion(execution.device_id, action);
    await follow(active, version, goal);
  }

  async function follow(active: ActiveUpdate, version: ReadVersion, goal: UpdateGoal): Promise<void> {
    active.isUnreadable = version.kind === "unreadable";
    const isAway = version.kind === "read" && !version.online && version.version !== goal.version;
    if (version.kind === "away" || isAway) return await take(active, stepGone(active.execution));
    if (version.kind !== "read") return;
    const step = stepAfter(active.execution, version, goal);
    if (step.kind === "commit") await commit(active, goal);
    else await take(active, step);
  }

  /** Commits firmware that has lasted; it must still be there. */
  async function commit(active: ActiveUpdate, goal: UpdateGoal): Promise<void> {
    const { action, execution } = active;
    const method = commitOf(action);
    if (method !== null) {
      const answer = await call(execution.device_id, method);
      const isRefused = answer.outcome === "error" && !isDone(answer);
      const boot = isRefused && method === otaCommit ? await readBootState(active) : "unknown";
      if (boot === "away" || boot === "silent") return;
      const isCommitted = boot === "committed";
      if (isRefused && !isCommitted) {
        const { error } = answer;
        return await end(active, { kind: "update_failed", at: now(), reason: "device_error", error });
      }
      const hasNone = answer.outcome === "no_such_function";
      if (!isDone(answer) && !hasNone && !isCommitted) return;
      const version = hasNone ? null : await versions.readVersion(execution.device_id, action);
      if (version !== null && (version.kind !== "read" || version.version !== goal.version))
        return await follow(active, version, goal);
    }
    await end(active, { kind: "installed", at: now(), reason: null });
  }

  /** Whether a device runs committed firmware, which Mongoose OS refuses to commit again. */
  async function readBootState({ execution }: ActiveUpdate): Promise<BootState> {
    const answer = await call(execution.device_id, "OTA.GetBootState");
    switch (answer.outcome) {
      case "result": {
        const isCommitted = isJsonObject(answer.result) ? answer.result.is_committed : undefined;
        if (typeof isCommitted !== "boolean") return "unknown";
        return isCommitted ? "committed" : "uncommitted";
      }
      case "error":
      case "no_such_function":
      case "unreadable":
      case "too_large":
        return "unknown";
      default:
        return answer.sent ? "silent" : "away";
    }
  }

  return {
    /** Does what is next with an update, and plans the next look. */
    async look(active: ActiveUpdate): Promise<void> {
      if (active.hasLeft || !options.mayGoOn()) return;
      const { action } = active;
      const { stage } = active.execution;
      updates.lookIn(active, failedMs);
      const firmware = await firmwareOf(action.firmware_id);
      if (firmware === null)
        return await end(active, { kind: "refused", at: now(), reason: "transfer_failed" });
      // What was declared before texts were trimmed may have blanks.
      const goal = { version: firmware.reported_as.trim(), stableMs: lengthOf(action.stable) };
      if (stage === "preparing") await prepare(active, { firmware, goal });
      else if (stage !== "transferring") await confirm(active, { firmware, goal });
      else if (action.via === "push") await pushFile(active, { firmware, goal });
      else await watch(active, { firmware, goal });
      updates.lookAgain(active, nextReadingAt(active.execution, goal));
    },

    /** What becomes of an update whose time is over. */
    async overdue(active: ActiveUpdate): Promise<ExecutionEvent> {
      const { execution, action } = active;
      const at = now();
      const { stage, device_id, expires_at } = execution;
      if (action.via === "shadow" && stage === "transferring" && at < expires_at) {
        // A device that sleeps has its time when it wakes.
        const { online } = await versions.readDevice(device_id);
        if (!online)
          return { kind: "progressed", dueAt: Math.min(at + lengthOf(action.timeout), expires_at) };
      }
      await offers.withdraw(execution);
      if (active.isUnreadable) return { kind: "update_failed", at, reason: "version_unreadable" };
      return { kind: "unanswered", at };
    },
  };
}

/** The function that commits the new version; null for none. */
function commitOf({ commit, via }: FirmwareAction): string | null {
  return commit ?? (via === "shadow" ? null : otaCommit);
}
