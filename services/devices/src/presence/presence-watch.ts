import type { deviceEvents } from "@devmesh/contracts/devices";
import { mqttBounds } from "@devmesh/contracts/mqtt";
import type { Clock } from "@devmesh/service-kit/clock";
import type { Publisher } from "@devmesh/service-kit/events/publisher";
import { KeyedQueue } from "@devmesh/service-kit/keyed-queue";
import { metricsOn } from "@devmesh/service-kit/metrics";
import { type CallContext, createCallContext } from "@devmesh/service-kit/rpc/context";
import type { Registry } from "prom-client";
import type { Background } from "../background.ts";
import type { BrokerConnections, ConnectionKey } from "../connections/broker-connections.ts";
import type { Diagnostics } from "../diagnostics/diagnostics.ts";
import type { Presence } from "../presence.ts";
import type { DeviceStore, PresenceReport } from "../store/device-store.ts";
import type { DeviceThrottle } from "../throttle/device-throttle.ts";
import { type PresenceChange, PresenceSets } from "./presence-sets.ts";

/** Options of the upkeep of presence. */
export interface PresenceWatchOptions {
  readonly store: Pick<DeviceStore, "listOnline" | "recordPresence" | "has">;
  readonly connections: Pick<BrokerConnections, "follow" | "list" | "close">;
  readonly background: Background;
  readonly clock: Clock;
  readonly publisher: Publisher<typeof deviceEvents>;
  /** Gets each connection, too. */
  readonly diagnostics: Pick<Diagnostics, "connected" | "disconnected">;
  /** Gets the listings, and each connection that ends. */
  readonly throttle: Pick<DeviceThrottle, "listed" | "disconnected">;
  /** How many nats-servers the broker has. */
  readonly servers: number;
}

/** How often all servers are asked for their connections, in milliseconds. */
const reconcileEveryMs = 30_000;
/** The pause after a listing that missed a known connection. */
const askAgainAfterMs = 1_000;
/** How long reports are collected before they are stored, in milliseconds: a crash loses these. */
const recordEveryMs = 1_000;
/** Reports stored at once. */
const reportBatchSize = 1_000;
const callTimeoutMs = 10_000;

/** Open connections of one device; each takes some 100 KB of the broker's memory. */
const { openConnections: maxConnectionsOfDevice } = mqttBounds;

/** Events published at once: a thousand devices that reconnect together must not cause timeouts. */
const maxPublishing = 128;

/** Presence of all devices, kept up to date. */
export interface PresenceWatch extends Presence {
  /** Unix ms at which the device connected last, as far as this process knows; null for one without a connection. */
  connectedAt(id: string): number | null;
  /** Devices with at least one open connection. */
  readonly devicesOnline: number;
  /** Open connections of all devices. */
  readonly connections: number;
  /** Stores the last reports. */
  stop(): Promise<void>;
}

/**
 * Keeps presence in memory, publishes `online` and `offline`, and records both in the store. Resolves when the
 * connections are listed: before that, devices could wrongly seem offline.
 */
export async function watchPresence(options: PresenceWatchOptions): Promise<PresenceWatch> {
  const { background } = options;
  const online = await background.retry("reading presence", callTimeoutMs, ({ signal }) =>
    options.store.listOnline(signal),
  );
  const watch = new Watch(options, online);
  await watch.start();
  return watch;
}

/** Registers gauges of presence. Each replica knows all devices: take the largest value, not the sum. */
export function registerPresenceMetrics(
  registry: Registry,
  presence: Pick<PresenceWatch, "devicesOnline" | "connections">,
): void {
  const { measuredGauge } = metricsOn(registry);
  measuredGauge(
    "devmesh_devices_online",
    "Devices with at least one open MQTT connection.",
    () => presence.devicesOnline,
  );
  measuredGauge(
    "devmesh_devices_mqtt_connections",
    "Open MQTT connections of all devices.",
    () => presence.connections,
  );
}

class Watch implements PresenceWatch {
  readonly #options: PresenceWatchOptions;
  readonly #sets: PresenceSets;
  readonly #startedAt: number;
  readonly #startedMonotonic: number;
  /** When each online device connected last. */
  readonly #connectedAt = new Map<string, number>();
  /** Not stored yet. */
  #reports = new Map<string, PresenceReport>();
  readonly #publishing = new KeyedQueue();
  #lastListedAt = 0;
  #cancelDue: (() => void) | null = null;
  #recording = false;
  #reconciling: Promise<void> | null = null;
  #unfollow: (() => Promise<void>) | null = null;

  constructor(options: PresenceWatchOptions, publishedOnline: readonly string[]) {
    this.#options = options;
    this.#sets = new PresenceSets(publishedOnline, options.servers);
    this.#startedAt = options.clock.now().getTime();
    this.#startedMonotonic = options.clock.monotonicMs();
  }

  async start(): Promise<void> {
    const { background, clock, connections, diagnostics, throttle } = this.#options;
    // Subscribed before the first listing: nothing in between is lost.
    this.#unfollow = connections.follow({
      connected: (connection) => {
        diagnostics.connected(connection);
        this.#connected(connection);
        if (this.#sets.connectionsOf(connection.deviceId) > maxConnectionsOfDevice) this.#close(connection);
      },
      disconnected: (connection) => {
        diagnostics.disconnected(connection);
        throttle.disconnected(connection);
        this.#sets.disconnected(connection, this.#now());
        this.#awaitDue();
      },
      missed: () => background.run("listing connections after a gap", () => this.#reconcile()),
    });
    const missing = await this.#list();
    background.run("listing connections", async () => {
      if (missing > 0) {
        await clock.sleep(askAgainAfterMs, background.signal);
        await this.#reconcile();
      }
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
    // Disconnected, and not published as offline yet.
    const departedAt = this.#sets.departedAt(id);
    if (departedAt !== null && departedAt > 0) return departedAt;
    return this.#reports.get(id)?.seen_at ?? connectedAt ?? null;
  }

  connectedAt(id: string): number | null {
    return this.#sets.connectionsOf(id) === 0 ? null : (this.#connectedAt.get(id) ?? null);
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

  /** Wall-clock milliseconds that ignore changes of the machine's clock. */
  #now(): number {
    return this.#startedAt + (this.#options.clock.monotonicMs() - this.#startedMonotonic);
  }

  #connected(connection: ConnectionKey): void {
    const now = this.#now();
    this.#connectedAt.set(connection.deviceId, now);
    this.#publishAll(this.#sets.connected(connection, now));
  }

  #close(connection: ConnectionKey): void {
    const { background, connections, clock } = this.#options;
    background.run("closing a connection beyond the bound of a device", async () => {
      using call = createCallContext({ timeoutMs: callTimeoutMs, signal: background.signal, clock });
      await connections.close(connection, call);
    });
  }

  /** One at a time: a request during a listing causes another one afterwards. */
  async #reconcile(): Promise<void> {
    while (this.#reconciling !== null) await this.#reconciling;
    this.#reconciling = this.#listUntilCertain().finally(() => {
      this.#reconciling = null;
    });
    await this.#reconciling;
  }

  async #listUntilCertain(): Promise<void> {
    const { background, clock } = this.#options;
    while ((await this.#list()) > 0) await clock.sleep(askAgainAfterMs, background.signal);
  }

  /** Returns how many known connections were not listed but may still exist. */
  async #list(): Promise<number> {
    const { background, connections, diagnostics, throttle, clock } = this.#options;
    const { listed, begun, askedMs } = await background.retry(
      "listing connections",
      callTimeoutMs,
      async (call) => {
        const begun = this.#sets.beginListing();
        const askedMs = clock.monotonicMs();
        return { listed: await connections.list(call), begun, askedMs };
      },
    );
    throttle.listed(listed, askedMs);
    const now = this.#now();
    const { changes, missing } = this.#sets.reconcile(listed, begun, now, this.#lastListedAt);
    this.#lastListedAt = now;
    const wallClock = clock.now().getTime();
    const unseen = listed.connections.filter(({ deviceId }) => !this.#connectedAt.has(deviceId));
    for (const connection of unseen) {
      const openMs = connection.listedMs - connection.acceptedMs;
      this.#connectedAt.set(connection.deviceId, now - openMs);
      diagnostics.connected({ ...connection, openMs, at: new Date(wallClock - openMs), reason: null });
    }
    this.#publishAll(changes);
    this.#awaitDue();
    return missing;
  }

  #awaitDue(): void {
    if (this.#cancelDue !== null) return;
    const dueAt = this.#sets.nextDueAt;
    if (dueAt === null) return;
    this.#cancelDue = this.#options.clock.schedule(Math.max(0, dueAt - this.#now()), () => {
      this.#cancelDue = null;
      const changes = this.#sets.takeDue(this.#now());
      for (const { deviceId } of changes) this.#connectedAt.delete(deviceId);
      this.#publishAll(changes);
      this.#awaitDue();
    });
  }

  #publishAll(changes: readonly PresenceChange[]): void {
    const { background } = this.#options;
    for (const change of changes) {
      const { kind, deviceId, seenAt } = change;
      this.#reports.set(deviceId, { id: deviceId, online: kind === "online", seen_at: Math.floor(seenAt) });
      background.run("publishing a change of presence", () =>
        this.#publishing.run(queueOf(deviceId), () =>
          background.retry("publishing a change of presence", callTimeoutMs, (call) =>
            this.#publish(change, call),
          ),
        ),
      );
    }
    if (changes.length > 0) this.#recordSoon();
  }

  /** Every replica publishes each change; the bus keeps one event of the same id. */
  async #publish({ kind, deviceId, connection }: PresenceChange, call: CallContext): Promise<void> {
    const { store, publisher, clock } = this.#options;
    if (!(await store.has(deviceId, call.signal))) return;
    const about = { id: deviceId, timestamp: clock.now().toISOString() };
    const dedupeId = `${kind}/${deviceId}/${connection ?? "unseen"}`;
    await publisher[kind](about, { dedupeId, call });
  }

  #recordSoon(): void {
    if (this.#recording) return;
    this.#recording = true;
    const { background, clock } = this.#options;
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
    // In portions: the next attempt continues after a timeout.
    for (let from = 0; from < reports.length; from += reportBatchSize) {
      const portion = reports.slice(from, from + reportBatchSize);
      await this.#options.store.recordPresence(portion, signal);
      for (const report of portion) {
        if (this.#reports.get(report.id) === report) this.#reports.delete(report.id);
      }
    }
  }
}

/** Events of one device go through one queue, so that they keep their order. */
function queueOf(deviceId: string): string {
  let sum = 0;
  for (let at = 0; at < deviceId.length; at++) sum = (31 * sum + deviceId.charCodeAt(at)) % maxPublishing;
  return String(sum);
}
