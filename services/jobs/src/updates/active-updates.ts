import type { FirmwareAction } from "@devmesh/contracts/model/action";
import type { Clock } from "@devmesh/service-kit/clock";
import { setNewest } from "@devmesh/service-kit/set-newest";
import type { StoredExecution } from "../store/execution-store.ts";
import { confirmOf } from "./version-reader.ts";

/** When an update is looked at after something happened to it, in milliseconds after the look before; then the last. */
const looksAfterMs = [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000];

/** How long after it has connected a device is looked at, and after a change of its shadow, in milliseconds. */
const onlineMs = 300;
const updatedMs = 200;

/** Updates that have left, of which a list may still show an earlier revision. */
const maxLeft = 10_000;

/** An update that is under way, as the leader knows it. */
export interface ActiveUpdate {
  execution: StoredExecution;
  readonly action: FirmwareAction;
  /** When it was taken up and is looked at next, by the monotonic clock. */
  readonly beganMs: number;
  lookAtMs: number;
  looks: number;
  /** What is done with it, one thing after the other, and how much that is. */
  queue: Promise<void>;
  pending: number;
  /** Its version could not be read when it was last asked. */
  isUnreadable: boolean;
  /** Whether another replica, or this one before, has begun it. */
  isResumed: boolean;
  /** Whether it has ended, or is another replica's. */
  hasLeft: boolean;
}

/** The updates that are under way, of the replica that leads. */
export class ActiveUpdates {
  readonly #byId = new Map<string, ActiveUpdate>();
  readonly #byDevice = new Map<string, ActiveUpdate>();
  readonly #left = new Map<string, number>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get all(): readonly ActiveUpdate[] {
    return [...this.#byId.values()];
  }

  /** Devices that are being pushed a file, or soon are. */
  get pushes(): number {
    const isPushed = ({ action, execution: { stage } }: ActiveUpdate) =>
      action.via === "push" && (stage === "preparing" || stage === "transferring");
    return this.all.filter(isPushed).length;
  }

  /** Whether a change of some shadow is awaited. */
  get awaitsReports(): boolean {
    return this.all.some(readsShadow);
  }

  hasDevice(deviceId: string): boolean {
    return this.#byDevice.has(deviceId);
  }

  /** Takes up an execution that this replica has begun. */
  begin(execution: StoredExecution): void {
    const active = this.adopt(execution);
    if (active !== null) active.isResumed = false;
  }

  /** Takes up an execution that is sent, or what became of it; null for one that has left, or is no update. */
  adopt(execution: StoredExecution): ActiveUpdate | null {
    const { id, action } = execution;
    if (action.kind !== "firmware" || execution.revision <= (this.#left.get(id) ?? 0)) return null;
    const known = this.#byId.get(id);
    if (known !== undefined) {
      this.changed(execution);
      return known;
    }
    const nowMs = this.#clock.monotonicMs();
    const active: ActiveUpdate = {
      execution,
      action,
      beganMs: nowMs,
      lookAtMs: nowMs,
      looks: 0,
      queue: Promise.resolve(),
      pending: 0,
      isUnreadable: false,
      isResumed: true,
      hasLeft: false,
    };
    this.#byId.set(id, active);
    this.#byDevice.set(execution.device_id, active);
    return active;
  }

  /** An execution was stored; an older revision than the known one changes nothing. */
  changed(after: StoredExecution): void {
    const active = this.#byId.get(after.id);
    if (active === undefined || after.revision <= active.execution.revision) return;
    const isFurther =
      after.stage !== active.execution.stage || (after.percent === 100 && active.execution.percent !== 100);
    active.execution = after;
    if (after.state !== "sent") this.leave(active);
    else if (isFurther) this.lookSoon(active, 0);
  }

  /** Forgets an update that has ended, or that this replica does not lead any more. */
  leave(active: ActiveUpdate): void {
    const { id, device_id, revision } = active.execution;
    active.hasLeft = true;
    this.#byId.delete(id);
    if (this.#byDevice.get(device_id) === active) this.#byDevice.delete(device_id);
    if (active.execution.state !== "sent") setNewest(this.#left, id, revision, maxLeft);
  }

  /** Something happened to it: it is looked at then, and more often. */
  lookSoon(active: ActiveUpdate, ms: number): void {
    active.looks = 0;
    active.lookAtMs = Math.min(active.lookAtMs, this.#clock.monotonicMs() + ms);
  }

  lookIn(active: ActiveUpdate, ms: number): void {
    active.lookAtMs = this.#clock.monotonicMs() + ms;
  }

  /** Plans the next look, at `at` in Unix milliseconds unless that is past, or the usual one comes before. */
  lookAgain(active: ActiveUpdate, at: number | null): void {
    const usualMs = looksAfterMs[Math.min(active.looks++, looksAfterMs.length - 1)] ?? 0;
    const leftMs = at === null ? 0 : at - this.#clock.now().getTime();
    active.lookAtMs = this.#clock.monotonicMs() + (leftMs > 0 ? Math.min(leftMs, usualMs) : usualMs);
  }

  /** The device has connected. */
  online(deviceId: string): void {
    const active = this.#byDevice.get(deviceId);
    if (active !== undefined) this.lookSoon(active, onlineMs);
  }

  /** The shadow of the device has changed. */
  updated(deviceId: string): void {
    const active = this.#byDevice.get(deviceId);
    if (active !== undefined && readsShadow(active)) this.lookSoon(active, updatedMs);
  }
}

function readsShadow({ action }: ActiveUpdate): boolean {
  return action.via === "shadow" || "shadow" in confirmOf(action);
}
