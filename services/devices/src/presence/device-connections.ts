import type { rpcBridge } from "@devmesh/contracts/rpc-bridge";
import type { CallContext } from "@devmesh/service-kit/context";
import type { Client } from "@devmesh/service-kit/implementation";

/** One MQTT connection of a device: the server that holds it and its number there, which is never used again. */
export interface DeviceConnection {
  readonly deviceId: string;
  readonly serverId: string;
  readonly connectionId: number;
}

/** What a device sent. */
export interface Received {
  readonly messages: number;
  readonly bytes: number;
}

/** An open connection. */
export interface OpenConnection extends DeviceConnection {
  /** MQTT client id that it logged in with. */
  readonly mqttClientId: string;
  /** Milliseconds since its server accepted it, by that server's clock. */
  readonly ageMs: number;
  /** What its server received on it so far. */
  readonly received: Received;
}

/** What a listing of connections found. */
export interface ListedConnections<C extends DeviceConnection = DeviceConnection> {
  /** Servers that answered. What is known of one that did not is unknown, not gone. */
  readonly servers: readonly string[];
  readonly connections: readonly C[];
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
  list(call: CallContext, deviceId?: string): Promise<ListedConnections<OpenConnection>>;
  /** Closes a connection; one that is gone already is no error. */
  close(connection: DeviceConnection, call: CallContext): Promise<void>;
}

/** What closing connections needs. */
export interface ClosingDeps {
  readonly connections: DeviceConnections;
  readonly rpcBridge: Pick<Client<typeof rpcBridge>, "endSessions">;
}

/**
 * Closes the connections that a device has now, except those younger than `minAgeMs`. The bridge takes their sessions
 * over, since the broker publishes the will of a connection that it closes on request, with the rights of its login.
 */
export async function closeConnections(
  { connections, rpcBridge }: ClosingDeps,
  deviceId: string,
  call: CallContext,
  minAgeMs = 0,
): Promise<void> {
  const listed = await connections.list(call, deviceId);
  const old = listed.connections.filter(({ ageMs }) => ageMs >= minAgeMs);
  if (old.length === 0) return;
  const client_ids = old.map(({ mqttClientId }) => mqttClientId);
  try {
    await rpcBridge.endSessions({ device_id: deviceId, client_ids }, call);
  } catch {
    // Access has to end even though wills are published now.
    await Promise.all(old.map((connection) => connections.close(connection, call)));
  }
}

/**
 * Milliseconds after which connections are closed a second time: a login that was being checked when the device's
 * access ended may come through after the first time.
 */
export const closeAgainAfterMs = 6_000;
