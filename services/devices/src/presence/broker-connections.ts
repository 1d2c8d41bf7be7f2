import { DeviceId } from "@devmesh/contracts/model/device-id";
import type { rpcBridge } from "@devmesh/contracts/rpc-bridge";
import {
  type BusiestConnections,
  closeDeviceConnection,
  type DeviceConnection,
  type DeviceConnectionEvent,
  type DeviceConnections,
  type ListBusiestConnectionsOptions,
  listBusiestConnections,
  listDeviceConnections,
  type OpenDeviceConnection,
  watchDeviceConnections,
} from "@devmesh/device-broker/connections";
import type { Bus } from "@devmesh/service-kit/bus";
import type { Clock } from "@devmesh/service-kit/clock";
import type { CallContext } from "@devmesh/service-kit/rpc/context";
import type { Client } from "@devmesh/service-kit/rpc/implementation";
import { setNewest } from "@devmesh/service-kit/set-newest";

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

/** Connections in the broker's account DEVICES, without those of services that use MQTT there. */
export function createBrokerConnections(bus: Bus): BrokerConnections {
  const isDevice = ({ deviceId }: ConnectionKey) => DeviceId.safeParse(deviceId).success;
  return {
    follow(listener) {
      const ignoreReconnects = bus.onReconnect(() => listener.missed());
      const takeovers = new Takeovers();
      const watching = watchDeviceConnections(bus, {
        connected: (connection) => {
          if (isDevice(connection)) listener.connected(connection);
          else takeovers.began(connection);
        },
        disconnected: (connection) => {
          if (isDevice(connection)) listener.disconnected(takeovers.explained(connection));
        },
      });
      return async () => {
        ignoreReconnects();
        await watching.stop();
      };
    },

    async list({ signal }, deviceId, servers = 0) {
      const only = deviceId === undefined ? {} : { deviceId };
      const listed = await listDeviceConnections(bus, { ...only, servers, signal });
      return { servers: listed.servers, connections: listed.connections.filter(isDevice) };
    },

    async listBusiest(options) {
      const { connections, othersIdleMs } = await listBusiestConnections(bus, options);
      return { othersIdleMs, connections: connections.filter(isDevice) };
    },

    async close({ serverId, connectionId }) {
      await closeDeviceConnection(bus, serverId, connectionId);
    },
  };
}

/** Milliseconds between a login of the bridge under a device's client id and the end of the session's connection. */
const takeoverMs = 10_000;

/** Takeovers that are remembered at most. */
const maxTakeovers = 1_000;

/** Distinguishes sessions that the bridge ends, by taking them over, from those that another login takes over. */
class Takeovers {
  /** When the bridge logged in, by client id. */
  readonly #began = new Map<string, number>();

  began({ mqttClientId, at }: DeviceConnectionEvent): void {
    setNewest(this.#began, mqttClientId, at.getTime(), maxTakeovers);
  }

  explained(connection: DeviceConnectionEvent): DeviceConnectionEvent {
    const { mqttClientId, at, reason } = connection;
    const began = this.#began.get(mqttClientId);
    if (reason !== "duplicate_client_id" || began === undefined || at.getTime() - began > takeoverMs)
      return connection;
    return { ...connection, reason: "ended_by_mesh" };
  }
}

interface ClosingOptions {
  readonly clock: Clock;
  readonly connections: BrokerConnections;
  readonly rpcBridge: Pick<Client<typeof rpcBridge>, "endSessions">;
}

/** Whether to close a connection of a listing that was asked for at `askedMs` (monotonic). */
export type IsOld = (connection: OpenDeviceConnection, askedMs: number) => boolean;

/**
 * Decides which connections were accepted before a change at `changedMs` (monotonic). Servers have other clocks: at a
 * listing, the change is past by at least the time since. Each listing narrows down when that was, so one decision
 * serves all listings after a change.
 */
export function acceptedBefore(changedMs: number): IsOld {
  /** The latest time that the change can have, by the clock of each server. */
  const latest = new Map<string, number>();
  return ({ serverId, acceptedMs, listedMs }, askedMs) => {
    const known = latest.get(serverId) ?? Number.POSITIVE_INFINITY;
    const changed = Math.min(known, listedMs - (askedMs - changedMs));
    latest.set(serverId, changed);
    return acceptedMs <= changed;
  };
}

/**
 * Closes the connections that a device has now, or the old ones of them. The bridge takes their sessions over, since
 * the broker publishes the will of a connection that it closes on request.
 */
export async function closeConnections(
  { connections, rpcBridge, clock }: ClosingOptions,
  deviceId: string,
  call: CallContext,
  isOld: IsOld = () => true,
): Promise<void> {
  const askedMs = clock.monotonicMs();
  const listed = await connections.list(call, deviceId);
  const old = listed.connections.filter((connection) => isOld(connection, askedMs));
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
 * Milliseconds after which connections are closed a second time: a login that was being checked when the device lost
 * its access may succeed after the first time.
 */
export const closeAgainAfterMs = 6_000;
