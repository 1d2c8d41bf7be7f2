import { DeviceId } from "@devmesh/contracts/model/device-id";
import {
  closeDeviceConnection,
  type DeviceConnectionEvent,
  listBusiestConnections,
  listDeviceConnections,
  watchDeviceConnections,
} from "@devmesh/device-broker/connections";
import type { Bus } from "@devmesh/service-kit/bus";
import { setNewest } from "@devmesh/service-kit/set-newest";
import type { BrokerConnections, ConnectionKey } from "./broker-connections.ts";

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
