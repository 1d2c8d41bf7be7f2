import type {
  BusiestConnections,
  DeviceConnectionEvent,
  DeviceConnections,
  OpenDeviceConnection,
  Traffic,
} from "@devmesh/device-broker/connections";
import type { ConnectionKey } from "../connections/broker-connections.ts";

/** Limits of one device over all its connections. */
export interface TrafficLimits {
  readonly messagesPerSecond: number;
  readonly bytesPerSecond: number;
}

/** A device that exceeded a limit. */
export interface Excess {
  readonly deviceId: string;
  readonly why: "messages" | "bytes";
}

/** Burst size, in seconds of the limit. */
const burstSeconds = 10;

/**
 * Connections of each server to list next. The most is more than one device may have, so that it cannot hide a busy
 * connection among its others.
 */
const page = { least: 32, most: 512 } as const;

/** How long after a message was counted it shows as activity, in milliseconds at most. */
const listingSlackMs = 100;

/** A connection that no listing covered for longer than this is not blamed for its sum at once. */
const uncoveredGraceMs = 1_000;

/** How long ended connections are remembered, and those that are no longer listed. */
const rememberMs = { ended: 60_000, silent: 600_000 } as const;

/** How much of a connection was counted, and when. */
interface Counted {
  readonly received: Traffic;
  readonly at: number;
  readonly hasEnded: boolean;
}

/** Fill of a device's bucket. */
interface Level extends Traffic {
  readonly at: number;
}

/** Traffic of one connection that was not counted before; all since `since`. */
interface Uncounted extends Traffic {
  readonly since: number;
}

const nothing: Traffic = { messages: 0, bytes: 0 };

/**
 * Meters what devices send by the counters of their connections, listed and ended: a leaky bucket for each device.
 * Times are monotonic milliseconds.
 */
export class TrafficMeter {
  readonly #limits: TrafficLimits;
  readonly #counted = new Map<string, Counted>();
  readonly #levels = new Map<string, Level>();
  /** Until when all traffic of a server is counted. */
  readonly #covered = new Map<string, number>();
  #pageSize: number = page.least;

  constructor(limits: TrafficLimits) {
    this.#limits = limits;
  }

  /** How many of its busiest connections each server lists next. */
  get pageSize(): number {
    return this.#pageSize;
  }

  /** Takes a listing of all connections that was asked for at `now`. */
  takeAll(listed: DeviceConnections, now: number): readonly Excess[] {
    const excesses = this.#count(listed.connections, now);
    for (const server of listed.servers.keys()) this.#cover(server, now);
    this.#forget(now);
    return excesses;
  }

  /** Takes a listing of the busiest connections that was asked for at `now`, and when it was answered. */
  takeBusiest(
    { othersIdleMs, connections }: BusiestConnections,
    now: number,
    answeredAt = now,
  ): readonly Excess[] {
    const excesses = this.#count(connections, now);
    const active = new Map<string, number>();
    for (const { serverId, idleMs } of connections)
      if (idleMs <= this.#uncoveredMs(serverId, answeredAt))
        active.set(serverId, (active.get(serverId) ?? 0) + 1);
    let pageSize: number = page.least;
    for (const [server, idleMs] of othersIdleMs) {
      const isCovering = idleMs >= this.#uncoveredMs(server, answeredAt);
      if (isCovering) this.#cover(server, now);
      pageSize = Math.max(
        pageSize,
        isCovering ? Math.min(2 * (active.get(server) ?? 0), page.most) : page.most,
      );
    }
    this.#pageSize = pageSize;
    return excesses;
  }

  /** Takes a connection that ended, also one that no listing had. */
  takeEnded(connection: DeviceConnectionEvent, now: number): readonly Excess[] {
    const acceptedAt = now - connection.openMs;
    return this.#fill(connection.deviceId, [this.#uncounted(connection, acceptedAt, now, true)], now);
  }

  #count(connections: readonly OpenDeviceConnection[], now: number): readonly Excess[] {
    const sent = new Map<string, Uncounted[]>();
    for (const connection of connections) {
      const acceptedAt = now - (connection.listedMs - connection.acceptedMs);
      const uncounted = this.#uncounted(connection, acceptedAt, now, false);
      const ofDevice = sent.get(connection.deviceId);
      if (ofDevice === undefined) sent.set(connection.deviceId, [uncounted]);
      else ofDevice.push(uncounted);
    }
    return [...sent].flatMap(([deviceId, uncounted]) => this.#fill(deviceId, uncounted, now));
  }

  /** Counts what a connection received beyond what was counted of it. */
  #uncounted(
    connection: ConnectionKey & { readonly received: Traffic },
    acceptedAt: number,
    now: number,
    hasEnded: boolean,
  ): Uncounted {
    const { serverId, received } = connection;
    const key = `${serverId}/${connection.connectionId}`;
    const before = this.#counted.get(key);
    const since = Math.max(before?.at ?? acceptedAt, this.#covered.get(serverId) ?? Number.NEGATIVE_INFINITY);
    // A listing that was made before the end may come after it, or after a newer one.
    if (before?.hasEnded === true) return { ...nothing, since };
    const { messages, bytes } = before?.received ?? nothing;
    this.#counted.set(key, {
      received: {
        messages: Math.max(messages, received.messages),
        bytes: Math.max(bytes, received.bytes),
      },
      at: now,
      hasEnded,
    });
    return {
      messages: Math.max(0, received.messages - messages),
      bytes: Math.max(0, received.bytes - bytes),
      since,
    };
  }

  #fill(deviceId: string, uncounted: readonly Uncounted[], now: number): readonly Excess[] {
    const { messagesPerSecond, bytesPerSecond } = this.#limits;
    const before = this.#levels.get(deviceId) ?? {
      ...nothing,
      at: Math.min(now, ...uncounted.map(({ since }) => since)),
    };
    const secondsPassed = Math.max(0, now - before.at) / 1_000;
    let messages = before.messages - secondsPassed * messagesPerSecond;
    let bytes = before.bytes - secondsPassed * bytesPerSecond;
    for (const part of uncounted) {
      // Since then the bucket has leaked without it.
      const late = Math.max(0, before.at - part.since - uncoveredGraceMs) / 1_000;
      messages += Math.max(0, part.messages - late * messagesPerSecond);
      bytes += Math.max(0, part.bytes - late * bytesPerSecond);
    }
    const excess = messages > burstSeconds * messagesPerSecond ? "messages" : "bytes";
    if (excess === "messages" || bytes > burstSeconds * bytesPerSecond) {
      this.#levels.delete(deviceId);
      return [{ deviceId, why: excess }];
    }
    if (messages <= 0 && bytes <= 0) this.#levels.delete(deviceId);
    else
      this.#levels.set(deviceId, {
        messages: Math.max(0, messages),
        bytes: Math.max(0, bytes),
        at: Math.max(now, before.at),
      });
    return [];
  }

  /** A connection that was idle for longer has nothing that was not counted. */
  #uncoveredMs(server: string, answeredAt: number): number {
    return answeredAt - (this.#covered.get(server) ?? Number.NEGATIVE_INFINITY) + listingSlackMs;
  }

  #cover(server: string, now: number): void {
    this.#covered.set(server, Math.max(now, this.#covered.get(server) ?? now));
  }

  #forget(now: number): void {
    for (const [key, { at, hasEnded }] of this.#counted)
      if (now - at > (hasEnded ? rememberMs.ended : rememberMs.silent)) this.#counted.delete(key);
    for (const [server, at] of this.#covered) if (now - at > rememberMs.silent) this.#covered.delete(server);
    for (const deviceId of this.#levels.keys()) this.#fill(deviceId, [], now);
  }
}
