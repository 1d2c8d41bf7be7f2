import type { CallContext } from "@devmesh/service-kit/rpc/context";

/** The known connections of devices. */
export interface Presence {
  /** Whether the device has at least one open MQTT connection. */
  isOnline(id: string): boolean;
  /** Unix ms at which it was last known to be connected; null when this process knows none. */
  lastSeen(id: string): number | null;
}

/** Presence that asks the nats-servers where what is known may be out of date. */
export interface ConfirmedPresence extends Presence {
  /**
   * Whether it is online or, if it was within the last minute, the nats-servers list a connection: while they restart,
   * a new connection may be reported to no service. True when they cannot be asked. `storedMs`: last seen, as stored.
   */
  isConnected(id: string, storedMs: number | null, call: CallContext): Promise<boolean>;
}
