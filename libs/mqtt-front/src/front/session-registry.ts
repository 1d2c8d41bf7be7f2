import { mqttBounds } from "@devmesh/contracts/mqtt";
import type { Clock } from "@devmesh/service-kit/clock";
import { MqttSession } from "../session/mqtt-session.ts";
import type { DeviceSocket } from "./device-socket.ts";

/** A will that waits for its delay. */
interface PendingWill {
  readonly cancel: () => void;
  readonly publish: () => void;
}

interface SessionEntry {
  readonly deviceId: string;
  readonly session: MqttSession;
  socket: DeviceSocket | null;
  will: PendingWill | null;
  /** Of a session without a connection. */
  cancelExpiry: (() => void) | null;
}

/** A session that a login begins or continues. */
export interface OpenedSession {
  readonly session: MqttSession;
  readonly isPresent: boolean;
  /** Another connection of the client id, which has to end. */
  readonly former: DeviceSocket | null;
}

/** The sessions of this process, by client id. */
export class SessionRegistry {
  readonly #clock: Clock;
  readonly #entries = new Map<string, SessionEntry>();
  /** Client ids by device; of those without a connection, the one that left first comes first. */
  readonly #ofDevice = new Map<string, Set<string>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** The session of a login. `isClean` ends one that is there. End `former` before {@link attach}. */
  find(clientId: string, isClean: boolean): OpenedSession {
    const entry = this.#entries.get(clientId);
    const former = entry?.socket ?? null;
    // A session that ends with its connection is not continued by the one that takes over.
    const continues = entry !== undefined && !isClean && entry.session.expiryMs > 0;
    return {
      session: continues ? entry.session : new MqttSession(clientId),
      isPresent: continues,
      former,
    };
  }

  /** Gives a session to a connection. */
  attach(session: MqttSession, deviceId: string, socket: DeviceSocket): void {
    const before = this.#entries.get(session.clientId);
    before?.cancelExpiry?.();
    before?.will?.cancel();
    // The session of a will that waits has ended, which publishes it, or goes on, which does not.
    if (before !== undefined && before.session !== session) before.will?.publish();
    this.#entries.delete(session.clientId);
    this.#entries.set(session.clientId, { deviceId, session, socket, will: null, cancelExpiry: null });
    const ofDevice = this.#ofDevice.get(deviceId) ?? new Set();
    this.#ofDevice.set(deviceId, ofDevice.add(session.clientId));
  }

  /** The connection that a session has now. */
  socketOf(session: MqttSession): DeviceSocket | null {
    const entry = this.#entries.get(session.clientId);
    return entry?.session === session ? entry.socket : null;
  }

  /** Publishes a will after its delay, unless its session goes on by then. */
  delayWill(session: MqttSession, delayMs: number, publish: () => void): void {
    const entry = this.#entries.get(session.clientId);
    if (delayMs === 0 || entry?.session !== session) {
      publish();
      return;
    }
    const cancel = this.#clock.schedule(delayMs, () => {
      entry.will = null;
      publish();
    });
    entry.will = { cancel, publish };
  }

  /** A connection has ended: its session is kept for its expiry, or ends. */
  detach(session: MqttSession): void {
    const entry = this.#entries.get(session.clientId);
    if (entry?.session !== session) return;
    entry.socket = null;
    if (session.expiryMs === 0) this.#end(session.clientId);
    else {
      entry.cancelExpiry = this.#clock.schedule(session.expiryMs, () => this.#end(session.clientId));
      const ofDevice = this.#ofDevice.get(entry.deviceId);
      // The last one to leave is the last one to go.
      ofDevice?.delete(session.clientId);
      ofDevice?.add(session.clientId);
      this.#boundDevice(entry.deviceId);
    }
  }

  /** Ends sessions of a device beyond its bound, first those without a connection for longest. */
  #boundDevice(deviceId: string): void {
    const kept = [...(this.#ofDevice.get(deviceId) ?? [])]
      .flatMap((clientId) => this.#entries.get(clientId) ?? [])
      .filter(({ session }) => session.expiryMs > 0);
    const away = kept.filter(({ socket }) => socket === null);
    for (const { session } of away.slice(0, Math.max(0, kept.length - mqttBounds.persistentSessions)))
      this.#end(session.clientId);
  }

  #end(clientId: string): void {
    const entry = this.#entries.get(clientId);
    if (entry === undefined) return;
    this.#entries.delete(clientId);
    entry.cancelExpiry?.();
    entry.will?.cancel();
    entry.will?.publish();
    const ofDevice = this.#ofDevice.get(entry.deviceId);
    ofDevice?.delete(clientId);
    if (ofDevice?.size === 0) this.#ofDevice.delete(entry.deviceId);
  }
}
