import type { FirmwareAction } from "@devmesh/contracts/model/action";
import { lengthOf } from "@devmesh/contracts/model/duration";
import type { StoredExecution } from "../store/execution-store.ts";
import type { ExecutionEvent } from "./execution-states.ts";

/** How long firmware waits to be committed beyond `stable` before it goes back to the old version, in milliseconds. */
const commitMarginMs = 600_000;

/** How much later than its device has the file a transfer may be noted, in milliseconds; clocks differ, too. */
const noteMarginMs = 5_000;

/** What the version of a device must be, and how long it must last, in milliseconds. */
export interface UpdateGoal {
  readonly version: string;
  readonly stableMs: number;
}

/** What a device reports; null for no version. */
export interface VersionReading {
  readonly version: string | null;
  /** When it was read, in Unix milliseconds. */
  readonly at: number;
}

/** What follows from a reading; `wait` for a later one, `commit` when the new version has lasted. */
export type UpdateStep = ExecutionEvent | { readonly kind: "wait" } | { readonly kind: "commit" };

/** How long the device keeps firmware that is not committed, in milliseconds. */
export function commitTimeoutMs({ stable }: FirmwareAction): number {
  return lengthOf(stable) + commitMarginMs;
}

/** What follows from the version before the update. */
export function stepBefore({ version, at }: VersionReading, goal: UpdateGoal): UpdateStep {
  if (version === goal.version) return { kind: "installed", at, reason: "already_installed" };
  const update = { from: version, gone: false, seen: false, version, since: at };
  return { kind: "progressed", stage: "transferring", update };
}

/** What follows where the device runs the new version before the update, and waits for its commit. */
export function stepUncommitted({ version, at }: VersionReading, goal: UpdateGoal): UpdateStep {
  return confirming({ from: null, gone: false, seen: true, version, since: at }, goal);
}

/** The new version is there since `update.since`, and must last. */
function confirming(
  update: NonNullable<StoredExecution["update"]> & { readonly since: number },
  { stableMs }: UpdateGoal,
): UpdateStep {
  const dueAt = update.since + stableMs + commitMarginMs;
  return { kind: "progressed", stage: "confirming", update, dueAt };
}

/** The device has got the whole file, as far as it or the gateway says. */
export function stepTransferred(
  { stage, update }: StoredExecution,
  at: number,
): Extract<UpdateStep, { readonly kind: "progressed" | "wait" }> {
  if (stage !== "transferring" || update === null) return { kind: "wait" };
  const got = { ...update, gone: false, since: at };
  return { kind: "progressed", stage: "rebooting", percent: 100, update: got };
}

/** Follows from when the device connected last: a reboot may be too short for presence, which ends after 2 s. */
export function stepConnected(execution: StoredExecution, connectedAt: number): UpdateStep {
  const { stage, update, sent_at } = execution;
  if (update?.since == null) return { kind: "wait" };
  const isAwaited = stage === "rebooting" && !update.gone;
  const after = isAwaited ? Math.max(sent_at ?? 0, update.since - noteMarginMs) : update.since;
  return connectedAt > after ? stepGone(execution) : { kind: "wait" };
}

/** The device was away: it may have rebooted, and what it reported before counts no more. */
export function stepGone({ stage, update }: StoredExecution): UpdateStep {
  // While it fetches, a device may lose its connection and go on.
  if (stage !== "rebooting" || update === null) return { kind: "wait" };
  if (update.gone && update.since === null) return { kind: "wait" };
  return { kind: "progressed", update: { ...update, gone: true, since: null } };
}

/**
 * What follows from a version that the device reports after the begin of the transfer. A version counts once it has
 * lasted: a shadow shows the old one until the device has reported, and a device may pass through another one.
 */
export function stepAfter(execution: StoredExecution, reading: VersionReading, goal: UpdateGoal): UpdateStep {
  const { stage, update } = execution;
  const { version, at } = reading;
  if (update === null) return { kind: "wait" };
  const since = version === update.version ? update.since : null;
  const hasLasted = since !== null && at - since >= goal.stableMs;
  const isNew = version === goal.version;
  if (isNew && stage === "confirming" && hasLasted) return { kind: "commit" };
  if (version === update.from) {
    if (update.seen || (update.gone && hasLasted))
      return { kind: "update_failed", at, reason: "rolled_back" };
    if (!update.gone) return { kind: "wait" };
  } else if (!isNew && hasLasted) return { kind: "update_failed", at, reason: "other_version" };
  if (since !== null) return { kind: "wait" };
  const noted = { ...update, version, since: at };
  return isNew ? confirming({ ...noted, seen: true }, goal) : { kind: "progressed", update: noted };
}

/** When the version must be read again at the latest, in Unix milliseconds; null for no such time. */
export function nextReadingAt({ stage, update }: StoredExecution, { stableMs }: UpdateGoal): number | null {
  const isHeld = stage === "confirming" || update?.version !== update?.from || update?.gone;
  return isHeld && update?.since != null ? update.since + stableMs : null;
}
