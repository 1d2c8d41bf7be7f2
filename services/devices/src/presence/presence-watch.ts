import type { deviceEvents } from "@devmesh/contracts/devices";
import type { Clock } from "@devmesh/service-kit/clock";
import type { CallContext } from "@devmesh/service-kit/context";
import type { Publisher } from "@devmesh/service-kit/events";
import { KeyedQueue } from "@devmesh/service-kit/keyed-queue";
import type { Background } from "../background.ts";
import type { Presence } from "../registry/device-view.ts";
import type { DeviceStore, PresenceReport } from "../store/device-store.ts";
import type { DeviceConnection, DeviceConnections } from "./device-connections.ts";
import { type PresenceChange, PresenceSets } from "./presence.ts";

/** What keeping up presence needs. */
export interface PresenceDeps {
  readonly store: DeviceStore;
  readonly connections: DeviceConnections;
  readonly publisher: Publisher<typeof deviceEvents>;
  readonly background: Background;
  readonly clock: Clock;
}

/** How often all servers are asked for their connections, in milliseconds. */
const reconcileEveryMs = 30_000;
/** After this many milliseconds they are asked again when a known connection was not listed. */
const askAgainAfterMs = 1_000;
/** How long reports for the store are collected, in milliseconds: a crash loses no more than these. */
const recordEveryMs = 1_000;
/** Reports that the store takes at once. */
const recordedAtOnce = 1_000;
const callTimeoutMs = 10_000;

/** Notices that are under way at once: a thousand devices that come back together must not run into timeouts. */
const lanes = 128;

/** Presence that is being kept up. */
export interface PresenceWatch extends Presence {
  /** Devices with at least one open connection. */
  readonly devicesOnline: number;
  /** Open connections of all devices. */
  readonly connections: number;
  /** Ends it and stores what is still to be stored. */
  stop(): Promise<void>;
}

/**
 * Keeps presence in memory, tells `online` and `offline`, and has the store remember both. Resolves when the
 * connections that exist now are known; until then a device could wrongly seem offline, so nothing is to be served.
 */
export async function watchPresence(deps: PresenceDeps): Promise<PresenceWatch> {
  const { background } = deps;
  const told = await background.retry("reading presence", callTimeoutMs, ({ signal }) =>
    deps.store.listOnline(signal),
  );
  const watch = new Watch(deps, told);
  await watch.start();
  return watch;
}

class Watch implements PresenceWatch {
  readonly #deps: PresenceDeps;
  readonly #sets: PresenceSets;
  readonly #startedAt: number;
  readonly #startedMonotonic: number;
  /** When each online device was last heard to connect. */
  readonly #connectedAt = new Map<string, number>();
  /** What the store does not know yet. */
  #reports = new Map<string, PresenceReport>();
  readonly #notices = new KeyedQueue();
  #lastListedAt = 0;
  #cancelDue: (() => void) | null = null;
  #recording = false;
  #reconciling: Promise<void> | null = null;
  #unfollow: (() => Promise<void>) | null = null;

  constructor(deps: PresenceDeps, told: readonly string[]) {
    this.#deps = deps;
    this.#sets = new PresenceSets(told);
    this.#startedAt = deps.clock.now().getTime();
    this.#startedMonotonic = deps.clock.monotonicMs();
  }

  async start(): Promise<void> {
    const { background, clock, connections } = this.#deps;
    // Heard before asked: nothing that happens in between is lost.
    this.#unfollow = connections.follow({
      connected: (connection) => this.#connected(connection),
      disconnected: (connection) => {
        this.#sets.disconnected(connection, this.#now());
        this.#awaitDue();
      },
      missed: () => background.run("listing connections after a gap", () => this.#reconcile()),
    });
    await this.#reconcile();
    background.run("listing connections", async () => {
      for (;;) {
        await clock.sleep(reconcileEveryMs, background.signal);
        await this.#reconcile();
      }
    });
  }

  isOnline(id: string): boolean {
    return this.#sets.isOnline(id);
  }

  lastSeen(id: string): number | null {
    const connectedAt = this.#connectedAt.get(id);
    if (connectedAt !== undefined && this.#sets.isOnline(id))
      return Math.max(connectedAt, this.#lastListedAt);
    // Gone, and not told so yet: it was seen until then, not only when it connected.
    const departedAt = this.#sets.departedAt(id);
    if (departedAt !== null && departedAt > 0) return departedAt;
    return this.#reports.get(id)?.seen_at ?? connectedAt ?? null;
  }

  get devicesOnline(): number {
    return this.#sets.devicesOnline;
  }

  get connections(): number {
    return this.#sets.connections;
  }

  async stop(): Promise<void> {
    this.#cancelDue?.();
    await this.#unfollow?.();
    await this.#record(AbortSignal.timeout(callTimeoutMs));
  }

  /** Wall-clock milliseconds that do not jump when the machine's clock is set. */
  #now(): number {
    return this.#startedAt + (this.#deps.clock.monotonicMs() - this.#startedMonotonic);
  }

  #connected(connection: DeviceConnection): void {
    const now = this.#now();
    this.#connectedAt.set(connection.deviceId, now);
    this.#tell(this.#sets.connected(connection, now));
  }

  /** One at a time: a listing asked for while one runs is that one and another behind it. */
  async #reconcile(): Promise<void> {
    while (this.#reconciling !== null) await this.#reconciling;
    this.#reconciling = this.#listUntilCertain().finally(() => {
      this.#reconciling = null;
    });
    await this.#reconciling;
  }

  async #listUntilCertain(): Promise<void> {
    const { background, clock } = this.#deps;
    while ((await this.#list()) > 0) await clock.sleep(askAgainAfterMs, background.signal);
  }

  /** Answers how many known connections were not listed but may still exist. */
  async #list(): Promise<number> {
    const { background, connections } = this.#deps;
    const [listed, begun] = await background.retry("listing connections", callTimeoutMs, async (call) => {
      const begun = this.#sets.beginListing();
      return [await connections.list(call), begun] as const;
    });
    const now = this.#now();
    const { changes, missing } = this.#sets.reconcile(listed, begun, now, this.#lastListedAt);
    this.#lastListedAt = now;
    for (const { deviceId } of listed.connections) {
      if (!this.#connectedAt.has(deviceId)) this.#connectedAt.set(deviceId, now);
    }
    this.#tell(changes);
    this.#awaitDue();
    return missing;
  }

  #awaitDue(): void {
    if (this.#cancelDue !== null) return;
    const dueAt = this.#sets.nextDueAt;
    if (dueAt === null) return;
    this.#cancelDue = this.#deps.clock.schedule(Math.max(0, dueAt - this.#now()), () => {
      this.#cancelDue = null;
      const changes = this.#sets.takeDue(this.#now());
      for (const { deviceId } of changes) this.#connectedAt.delete(deviceId);
      this.#tell(changes);
      this.#awaitDue();
    });
  }

  #tell(changes: readonly PresenceChange[]): void {
    const { background } = this.#deps;
    for (const change of changes) {
      const { kind, deviceId, seenAt } = change;
      this.#reports.set(deviceId, { id: deviceId, online: kind === "online", seen_at: Math.floor(seenAt) });
      background.run("telling a change of presence", () =>
        this.#notices.run(laneOf(deviceId), () =>
          background.retry("telling a change of presence", callTimeoutMs, (call) =>
            this.#publish(change, call),
          ),
        ),
      );
    }
    if (changes.length > 0) this.#recordSoon();
  }

  /** Replicas hear of the same connections; the event's id lets the bus keep one of their notices. */
  async #publish({ kind, deviceId, connection }: PresenceChange, call: CallContext): Promise<void> {
    const { store, publisher, clock } = this.#deps;
    if (!(await store.has(deviceId, call.signal))) return;
    const about = { id: deviceId, timestamp: clock.now().toISOString() };
    const dedupeId = `${kind}/${deviceId}/${connection ?? "unseen"}`;
    await publisher.bestEffort[kind](about, { dedupeId, call });
  }

  #recordSoon(): void {
    if (this.#recording) return;
    this.#recording = true;
    const { background, clock } = this.#deps;
    background.run("recording presence", async () => {
      try {
        await clock.sleep(recordEveryMs, background.signal);
        await background.retry("recording presence", callTimeoutMs, ({ signal }) => this.#record(signal));
      } finally {
        this.#recording = false;
      }
      if (this.#reports.size > 0) this.#recordSoon();
    });
  }

  async #record(signal: AbortSignal): Promise<void> {
    const reports = [...this.#reports.values()];
    // In portions: what one attempt has no time for is left to the next.
    for (let from = 0; from < reports.length; from += recordedAtOnce) {
      const portion = reports.slice(from, from + recordedAtOnce);
      await this.#deps.store.recordPresence(portion, signal);
      for (const report of portion) {
        if (this.#reports.get(report.id) === report) this.#reports.delete(report.id);
      }
    }
  }
}

/** Notices of one device stand in one lane, so that they are told in their order. */
function laneOf(deviceId: string): string {
  let sum = 0;
  for (let at = 0; at < deviceId.length; at++) sum = (31 * sum + deviceId.charCodeAt(at)) % lanes;
  return String(sum);
}
