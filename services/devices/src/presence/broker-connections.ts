import { DeviceId } from "@devmesh/contracts/model/device-id";
import {
  closeDeviceConnection,
  listDeviceConnections,
  watchDeviceConnections,
} from "@devmesh/device-broker/connections";
import type { Bus } from "@devmesh/service-kit/bus";
import type { DeviceConnection, DeviceConnections } from "./device-connections.ts";

/** Connections in the broker's account DEVICES. Those of services that talk MQTT there, too, are left out. */
export function createBrokerConnections(bus: Bus): DeviceConnections {
  const isDevice = ({ deviceId }: DeviceConnection) => DeviceId.safeParse(deviceId).success;
  return {
    follow(listener) {
      const ignoreReconnects = bus.onReconnect(() => listener.missed());
      const watching = watchDeviceConnections(bus, {
        connected: (connection) => {
          if (isDevice(connection)) listener.connected(connection);
        },
        disconnected: (connection) => {
          if (isDevice(connection)) listener.disconnected(connection);
        },
      });
      return async () => {
        ignoreReconnects();
        await watching.stop();
      };
    },

    async list({ signal }, deviceId) {
      const only = deviceId === undefined ? {} : { deviceId };
      const { servers, connections } = await listDeviceConnections(bus, { ...only, signal });
      return { servers, connections: connections.filter(isDevice) };
    },

    async close({ serverId, connectionId }) {
      await closeDeviceConnection(bus, serverId, connectionId);
    },
  };
}
