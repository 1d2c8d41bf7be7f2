import type { DeviceConnections, OpenDeviceConnection } from "@devmesh/device-broker/connections";

type Received = OpenDeviceConnection["received"];

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

interface Level extends Received {
  readonly at: number;
}

/**
 * Meters what devices send by the counters in listings of connections: a leaky bucket for each device. Times are
 * monotonic milliseconds.
 */
export class TrafficMeter {
  readonly #limits: TrafficLimits;
  /** Counters by server and connection. */
  #seen = new Map<string, Map<number, Received>>();
  #levels = new Map<string, Level>();
  #listedAt: number | null = null;

  constructor(limits: TrafficLimits) {
    this.#limits = limits;
  }

  /** Takes a listing made at `now`. Traffic before the first listing does not count. */
  take({ servers, connections }: DeviceConnections, now: number): readonly Excess[] {
    const since = this.#listedAt ?? now;
    const first = this.#listedAt === null;
    this.#listedAt = now;
    // Counters of a server that did not answer continue at its next answer.
    const seen = new Map([...this.#seen].filter(([server]) => !servers.has(server)));
    const sent = new Map<string, Received>();
    for (const { deviceId, serverId, connectionId, received } of connections) {
      const before = this.#seen.get(serverId)?.get(connectionId) ?? { messages: 0, bytes: 0 };
      const ofServer = seen.get(serverId) ?? new Map<number, Received>();
      seen.set(serverId, ofServer.set(connectionId, received));
      if (first) continue;
      const sum = sent.get(deviceId) ?? { messages: 0, bytes: 0 };
      sent.set(deviceId, {
        messages: sum.messages + received.messages - before.messages,
        bytes: sum.bytes + received.bytes - before.bytes,
      });
    }
    this.#seen = seen;
    return this.#fill(sent, since, now);
  }

  #fill(sent: ReadonlyMap<string, Received>, since: number, now: number): readonly Excess[] {
    const { messagesPerSecond, bytesPerSecond } = this.#limits;
    const levels = new Map<string, Level>();
    const excesses: Excess[] = [];
    for (const deviceId of new Set([...this.#levels.keys(), ...sent.keys()])) {
      const before = this.#levels.get(deviceId) ?? { messages: 0, bytes: 0, at: since };
      const more = sent.get(deviceId) ?? { messages: 0, bytes: 0 };
      const seconds = (now - before.at) / 1_000;
      const messages = Math.max(0, before.messages + more.messages - seconds * messagesPerSecond);
      const bytes = Math.max(0, before.bytes + more.bytes - seconds * bytesPerSecond);
      if (messages > burstSeconds * messagesPerSecond) excesses.push({ deviceId, why: "messages" });
      else if (bytes > burstSeconds * bytesPerSecond) excesses.push({ deviceId, why: "bytes" });
      else if (messages > 0 || bytes > 0) levels.set(deviceId, { messages, bytes, at: now });
    }
    this.#levels = levels;
    return excesses;
  }
}
