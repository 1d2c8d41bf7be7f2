import type { DeviceConnection, ListedConnections } from "./device-connections.ts";

/** Milliseconds for which a device without a connection is not yet told to be offline (api.md, Notification stream). */
export const offlineAfterMs = 2_000;
/** Milliseconds for which an ended connection is remembered: longer than any listing of connections takes. */
const rememberEndedMs = 60_000;
/**
 * Milliseconds for which a connection that listings missed is remembered: longer than the bus takes two notices with
 * one id for the same.
 */
const rememberMissedMs = 150_000;
/** Listings in a row that must miss a connection before it counts as gone: one alone may have been cut short. */
const missesUntilGone = 2;
/** The same for connections of a server that did not answer: it may be slow rather than dead. */
const missesUntilServerGone = 3;

/** What is to be told about a device. */
export interface PresenceChange {
  readonly kind: "online" | "offline";
  readonly deviceId: string;
  /**
   * The connection that decided: the first of an online device, the last of an offline one; null when this process
   * never saw it. The same in every replica, so that their notices of one change are known for one; different when a
   * connection that was thought lost turns up again.
   */
  readonly connection: string | null;
  /** When the device was last known to be connected, on the caller's time scale. */
  readonly seenAt: number;
}

interface OpenConnection {
  readonly deviceId: string;
  readonly serverId: string;
  /** What a change that it decides is told under. */
  readonly noticeId: string;
  /** Place among all that was ever opened here; tells whether a listing could know it. */
  readonly opened: number;
  misses: number;
}

interface Departure {
  readonly dueAt: number;
  readonly connection: string | null;
  readonly seenAt: number;
}

/** A listing of connections that has begun; connections opened after that are none of its business. */
export interface BegunListing {
  readonly openedBefore: number;
}

/**
 * Which devices are connected: for each the set of its connections, kept from what servers say as it happens and from
 * listings now and then. It waits for nothing and tells nothing: each method answers what is to be told. Times are
 * milliseconds on a scale of the caller's that never goes back.
 */
export class PresenceSets {
  readonly #open = new Map<string, OpenConnection>();
  readonly #byDevice = new Map<string, Set<string>>();
  /** Ended connections by the time at which they are forgotten, in that order. */
  readonly #ended = new Map<string, number>();
  /** Connections that listings missed, likewise. */
  readonly #missed = new Map<string, number>();
  readonly #toldOnline: Set<string>;
  /** Devices without a connection that are still told to be online, in the order in which they are due. */
  readonly #departures = new Map<string, Departure>();
  #opened = 0;

  /** `toldOnline`: the devices that were told to be online last, before this process started. */
  constructor(toldOnline: Iterable<string> = []) {
    this.#toldOnline = new Set(toldOnline);
  }

  /** Whether the device has at least one open connection. */
  isOnline(deviceId: string): boolean {
    return this.#byDevice.has(deviceId);
  }

  /** When the last connection of a device went that is still told to be online; null if there is no such moment. */
  departedAt(deviceId: string): number | null {
    return this.#departures.get(deviceId)?.seenAt ?? null;
  }

  /** Devices with at least one open connection. */
  get devicesOnline(): number {
    return this.#byDevice.size;
  }

  /** Open connections of all devices. */
  get connections(): number {
    return this.#open.size;
  }

  connected(connection: DeviceConnection, now: number): PresenceChange[] {
    this.#forget(now);
    const key = keyOf(connection);
    // Its end was heard first: the two come from the same server, but may overtake each other on the way.
    if (this.#ended.has(key)) return [];
    return this.#add(key, connection, now);
  }

  disconnected(connection: DeviceConnection, now: number): void {
    this.#forget(now);
    const key = keyOf(connection);
    this.#ended.delete(key);
    this.#ended.set(key, now + rememberEndedMs);
    this.#remove(key, now, now);
  }

  /** To be called before servers are asked for their connections; its answer goes to `reconcile`. */
  beginListing(): BegunListing {
    return { openedBefore: this.#opened };
  }

  /**
   * Takes in what the servers listed: adds what was not heard of, and drops what listings in a row do not name (two of
   * its own server, or three that its server did not answer), since a killed server says nothing. `missing` counts
   * what is on the way to that. `lastListedAt`: when the listing before this one was taken in.
   */
  reconcile(
    listed: ListedConnections,
    { openedBefore }: BegunListing,
    now: number,
    lastListedAt: number,
  ): { readonly changes: PresenceChange[]; readonly missing: number } {
    this.#forget(now);
    const changes: PresenceChange[] = [];
    const keys = new Set<string>();
    for (const connection of listed.connections) {
      const key = keyOf(connection);
      keys.add(key);
      const open = this.#open.get(key);
      if (open !== undefined) open.misses = 0;
      else if (!this.#ended.has(key)) changes.push(...this.#add(key, connection, now));
    }
    const answered = new Set(listed.servers);
    let missing = 0;
    for (const [key, open] of this.#open) {
      if (keys.has(key) || open.opened >= openedBefore) continue;
      open.misses++;
      const limit = answered.has(open.serverId) ? missesUntilGone : missesUntilServerGone;
      if (open.misses < limit) missing++;
      else {
        this.#missed.set(key, now + rememberMissedMs);
        this.#remove(key, now, lastListedAt);
      }
    }
    for (const deviceId of this.#toldOnline) {
      if (this.#byDevice.has(deviceId) || this.#departures.has(deviceId)) continue;
      this.#departures.set(deviceId, { dueAt: now + offlineAfterMs, connection: null, seenAt: 0 });
    }
    return { changes, missing };
  }

  /** Devices that have been without a connection for long enough to say so. */
  takeDue(now: number): PresenceChange[] {
    const changes: PresenceChange[] = [];
    for (const [deviceId, { dueAt, connection, seenAt }] of this.#departures) {
      if (dueAt > now) break;
      this.#departures.delete(deviceId);
      this.#toldOnline.delete(deviceId);
      changes.push({ kind: "offline", deviceId, connection, seenAt });
    }
    return changes;
  }

  /** When `takeDue` has something to take next; null when nothing is under way. */
  get nextDueAt(): number | null {
    for (const { dueAt } of this.#departures.values()) return dueAt;
    return null;
  }

  #add(key: string, { deviceId, serverId }: DeviceConnection, now: number): PresenceChange[] {
    if (this.#open.has(key)) return [];
    const noticeId = this.#missed.delete(key) ? `${key}@${now}` : key;
    this.#open.set(key, { deviceId, serverId, noticeId, opened: this.#opened++, misses: 0 });
    const connections = this.#byDevice.get(deviceId);
    if (connections === undefined) this.#byDevice.set(deviceId, new Set([key]));
    else connections.add(key);
    this.#departures.delete(deviceId);
    if (this.#toldOnline.has(deviceId)) return [];
    this.#toldOnline.add(deviceId);
    return [{ kind: "online", deviceId, connection: noticeId, seenAt: now }];
  }

  #remove(key: string, now: number, seenAt: number): void {
    const open = this.#open.get(key);
    if (open === undefined) return;
    this.#open.delete(key);
    const connections = this.#byDevice.get(open.deviceId);
    connections?.delete(key);
    if (connections === undefined || connections.size > 0) return;
    this.#byDevice.delete(open.deviceId);
    this.#departures.set(open.deviceId, { dueAt: now + offlineAfterMs, connection: open.noticeId, seenAt });
  }

  #forget(now: number): void {
    for (const remembered of [this.#ended, this.#missed]) {
      for (const [key, until] of remembered) {
        if (until > now) break;
        remembered.delete(key);
      }
    }
  }
}

function keyOf({ serverId, connectionId }: DeviceConnection): string {
  return `${serverId}/${connectionId}`;
}
