import type { ConnectionKey } from "../connections/broker-connections.ts";

/** Milliseconds without a connection after which a device counts as offline (api.md, Notification stream). */
export const offlineAfterMs = 2_000;
/** Milliseconds for which an ended connection is remembered: longer than any listing of connections takes. */
const rememberEndedMs = 60_000;
/** Milliseconds for which a missed connection is remembered: longer than the bus deduplicates events by id. */
const rememberMissedMs = 150_000;
/** Listings in a row that must miss a connection before it counts as gone: one may be incomplete. */
const missesUntilGone = 2;
/**
 * Milliseconds after which connections of a server that does not answer count as gone: a server that is about to stop
 * answers no listing and reports no disconnect, and keeps connections for half a minute.
 */
export const serverGoneAfterMs = 35_000;

/** A change to publish. */
export interface PresenceChange {
  readonly kind: "online" | "offline";
  readonly deviceId: string;
  /**
   * The first connection of an online device, the last of an offline one; null when this process never saw it. It is
   * the same in every replica, which deduplicates their events, unless a missed connection appears again.
   */
  readonly connection: string | null;
  /** When the device was last known to be connected, on the caller's time scale. */
  readonly seenAt: number;
}

interface OpenConnection {
  readonly deviceId: string;
  readonly serverId: string;
  /** Id of the change that it causes. */
  readonly eventId: string;
  /** Sequence number; shows whether a listing could contain it. */
  readonly opened: number;
  misses: number;
  /** When the first of these listings was evaluated. */
  missedSince: number;
}

interface PendingOffline {
  readonly dueAt: number;
  readonly connection: string | null;
  readonly seenAt: number;
}

/** A listing that has begun; it says nothing about connections opened later. */
export interface BegunListing {
  readonly openedBefore: number;
}

/**
 * The set of connections of each device, kept from the servers' events and from listings. Pure: methods return the
 * changes to publish. Times are milliseconds of a monotonic scale.
 */
export class PresenceSets {
  readonly #open = new Map<string, OpenConnection>();
  readonly #byDevice = new Map<string, Set<string>>();
  /** Of the servers that answered last, by name. */
  readonly #serverIds = new Map<string, string>();
  /** Ended connections with the time at which they are forgotten, in that order. */
  readonly #ended = new Map<string, number>();
  /** Missed connections, likewise. */
  readonly #missed = new Map<string, number>();
  readonly #publishedOnline: Set<string>;
  /** Devices without a connection that are still published as online, in the order in which they are due. */
  readonly #pendingOffline = new Map<string, PendingOffline>();
  /** Those that were so before this process started, and that no listing and no event has shown since. */
  readonly #restored: Set<string>;
  /** When the first listing was evaluated. */
  #restoredAt: number | null = null;
  readonly #servers: number;
  #opened = 0;

  /**
   * `publishedOnline`: devices whose last published state, before this process started, is online. Each stays so until
   * a listing by that many `servers` misses it: a server that is about to stop lists nothing and keeps its connections.
   */
  constructor(publishedOnline: Iterable<string> = [], servers = 1) {
    this.#publishedOnline = new Set(publishedOnline);
    this.#restored = new Set(publishedOnline);
    this.#servers = servers;
  }

  /** Whether the device has at least one open connection, or had one when this process started. */
  isOnline(deviceId: string): boolean {
    return this.#byDevice.has(deviceId) || this.#restored.has(deviceId);
  }

  /** Open connections of the device. */
  connectionsOf(deviceId: string): number {
    return this.#byDevice.get(deviceId)?.size ?? 0;
  }

  /** When a device still published as online lost its last connection; null for others. */
  departedAt(deviceId: string): number | null {
    return this.#pendingOffline.get(deviceId)?.seenAt ?? null;
  }

  /** Devices that are online. */
  get devicesOnline(): number {
    return this.#byDevice.size + this.#restored.size;
  }

  /** Open connections of all devices. */
  get connections(): number {
    return this.#open.size;
  }

  connected(connection: ConnectionKey, now: number): PresenceChange[] {
    this.#forget(now);
    const key = keyOf(connection);
    // Its end came first: the two events may overtake each other.
    if (this.#ended.has(key)) return [];
    return this.#add(key, connection, now);
  }

  disconnected(connection: ConnectionKey, now: number): void {
    this.#forget(now);
    const key = keyOf(connection);
    this.#ended.delete(key);
    this.#ended.set(key, now + rememberEndedMs);
    this.#remove(key, now, now);
  }

  /** Call before asking the servers; the result goes to `reconcile`. */
  beginListing(): BegunListing {
    return { openedBefore: this.#opened };
  }

  /**
   * Adds listed connections that are unknown, and drops those missing from several listings in a row, since a killed
   * server sends no events. `missing` counts those not dropped yet, and devices that were online before the start.
   * `lastListedAt`: time of the listing before.
   */
  reconcile(
    listed: {
      /** Names by id. */
      readonly servers: ReadonlyMap<string, string>;
      readonly connections: readonly ConnectionKey[];
    },
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
    const restarted = this.#restarted(listed.servers);
    let missing = 0;
    for (const [key, open] of this.#open) {
      if (keys.has(key) || open.opened >= openedBefore) continue;
      if (open.misses++ === 0) open.missedSince = now;
      const isGone = listed.servers.has(open.serverId)
        ? open.misses >= missesUntilGone
        : restarted.has(open.serverId) || now - open.missedSince >= serverGoneAfterMs;
      if (!isGone) missing++;
      else {
        this.#missed.set(key, now + rememberMissedMs);
        this.#remove(key, now, lastListedAt);
      }
    }
    this.#dropRestored(listed.servers.size, now);
    return { changes, missing: missing + this.#restored.size };
  }

  /** Devices that are offline now. */
  takeDue(now: number): PresenceChange[] {
    const changes: PresenceChange[] = [];
    for (const [deviceId, { dueAt, connection, seenAt }] of this.#pendingOffline) {
      if (dueAt > now) break;
      this.#pendingOffline.delete(deviceId);
      this.#publishedOnline.delete(deviceId);
      changes.push({ kind: "offline", deviceId, connection, seenAt });
    }
    return changes;
  }

  /** When `takeDue` returns something next; null for never. */
  get nextDueAt(): number | null {
    for (const { dueAt } of this.#pendingOffline.values()) return dueAt;
    return null;
  }

  /** Ids of servers in whose place another one of the same name answers. */
  #restarted(answered: ReadonlyMap<string, string>): ReadonlySet<string> {
    const former = new Set<string>();
    for (const [id, name] of answered) {
      const known = this.#serverIds.get(name);
      if (known !== undefined && known !== id) former.add(known);
      this.#serverIds.set(name, id);
    }
    return former;
  }

  #add(key: string, { deviceId, serverId }: ConnectionKey, now: number): PresenceChange[] {
    if (this.#open.has(key)) return [];
    const eventId = this.#missed.delete(key) ? `${key}@${now}` : key;
    this.#open.set(key, { deviceId, serverId, eventId, opened: this.#opened++, misses: 0, missedSince: 0 });
    const connections = this.#byDevice.get(deviceId);
    if (connections === undefined) this.#byDevice.set(deviceId, new Set([key]));
    else connections.add(key);
    this.#restored.delete(deviceId);
    this.#pendingOffline.delete(deviceId);
    if (this.#publishedOnline.has(deviceId)) return [];
    this.#publishedOnline.add(deviceId);
    return [{ kind: "online", deviceId, connection: eventId, seenAt: now }];
  }

  /** Drops devices that were online before the start, unless a server that may have them did not answer. */
  #dropRestored(answered: number, now: number): void {
    this.#restoredAt ??= now;
    if (answered < this.#servers && now - this.#restoredAt < serverGoneAfterMs) return;
    const dueAt = now + offlineAfterMs;
    for (const deviceId of this.#restored)
      this.#pendingOffline.set(deviceId, { dueAt, connection: null, seenAt: 0 });
    this.#restored.clear();
  }

  #remove(key: string, now: number, seenAt: number): void {
    const open = this.#open.get(key);
    if (open === undefined) return;
    this.#open.delete(key);
    const connections = this.#byDevice.get(open.deviceId);
    connections?.delete(key);
    if (connections === undefined || connections.size > 0) return;
    this.#byDevice.delete(open.deviceId);
    this.#pendingOffline.set(open.deviceId, {
      dueAt: now + offlineAfterMs,
      connection: open.eventId,
      seenAt,
    });
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

function keyOf({ serverId, connectionId }: ConnectionKey): string {
  return `${serverId}/${connectionId}`;
}
