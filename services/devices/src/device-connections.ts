import type { CallContext } from "@devmesh/service-kit/context";

/** One MQTT connection of a device: the server that holds it and its number there, which is never used again. */
export interface DeviceConnection {
  readonly deviceId: string;
  readonly serverId: string;
  readonly connectionId: number;
}

/** What a listing of connections found. */
export interface ListedConnections {
  /** Servers that answered. What is known of one that did not is unknown, not gone. */
  readonly servers: readonly string[];
  readonly connections: readonly DeviceConnection[];
}

/** What is heard of connections as it happens. Handlers must not throw. */
export interface ConnectionListener {
  connected(connection: DeviceConnection): void;
  /** May be heard before the connection's `connected`, and is not heard at all of a killed server. */
  disconnected(connection: DeviceConnection): void;
  /** What happened until now may not have been heard. */
  missed(): void;
}

/** The broker's connections of devices, over all its servers. */
export interface DeviceConnections {
  /** Hears of connections from now on; the returned function ends it. */
  follow(listener: ConnectionListener): () => Promise<void>;
  /** Open connections: those of one device, or all of them. */
  list(call: CallContext, deviceId?: string): Promise<ListedConnections>;
  /** Closes a connection; one that is gone already is no error. */
  close(connection: DeviceConnection, call: CallContext): Promise<void>;
}

/** Closes every connection that a device has now. */
export async function closeConnections(
  connections: DeviceConnections,
  deviceId: string,
  call: CallContext,
): Promise<void> {
  const listed = await connections.list(call, deviceId);
  await Promise.all(listed.connections.map((connection) => connections.close(connection, call)));
}

/**
 * Milliseconds after which connections are closed a second time: a login that was being checked when the device's
 * access ended may come through after the first time.
 */
export const closeAgainAfterMs = 6_000;
