import type {
  BusiestConnections,
  DeviceConnection,
  DeviceConnectionEvent,
  DeviceConnections,
  ListBusiestConnectionsOptions,
} from "@devmesh/device-broker/connections";
import type { CallContext } from "@devmesh/service-kit/rpc/context";

/** Names one MQTT connection of a device. */
export type ConnectionKey = Pick<DeviceConnection, "deviceId" | "serverId" | "connectionId">;

/** Handlers for connections as they open and end. They must not throw. */
export interface ConnectionListener {
  connected(connection: DeviceConnectionEvent): void;
  /** May come before the connection's `connected`; never comes for a killed server. */
  disconnected(connection: DeviceConnectionEvent): void;
  /** Earlier changes may have been missed. */
  missed(): void;
}

/** The connections of devices to all servers of the broker. */
export interface BrokerConnections {
  /** Reports connections from now on, until the returned function is called. */
  follow(listener: ConnectionListener): () => Promise<void>;
  /** Open connections: those of one device, or all of them. It is faster where the number of servers is known. */
  list(call: CallContext, deviceId?: string, servers?: number): Promise<DeviceConnections>;
  /** Open connections that were active last. */
  listBusiest(options: ListBusiestConnectionsOptions): Promise<BusiestConnections>;
  /** Closes a connection; one that is gone already is no error. */
  close(connection: ConnectionKey, call: CallContext): Promise<void>;
}
