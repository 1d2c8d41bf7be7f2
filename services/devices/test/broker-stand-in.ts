import type {
  ConnectionListener,
  DeviceConnection,
  DeviceConnections,
  ListedConnections,
} from "../src/device-connections.ts";

/** The broker's side of device connections, moved by the test. */
export class BrokerStandIn implements DeviceConnections {
  readonly open = new Set<DeviceConnection>();
  /** Servers that answer a listing. */
  readonly servers = new Set(["S1", "S2"]);
  /** Closures asked for, also of connections that were gone. */
  readonly closed: DeviceConnection[] = [];
  /** Runs while a listing is under way, after its content is fixed. */
  whileListing: () => void | Promise<void> = () => undefined;
  readonly #listeners = new Set<ConnectionListener>();
  #numbers = 0;

  follow(listener: ConnectionListener): () => Promise<void> {
    this.#listeners.add(listener);
    return async () => void this.#listeners.delete(listener);
  }

  async list(_call: unknown, deviceId?: string): Promise<ListedConnections> {
    const connections = [...this.open].filter((one) => deviceId === undefined || one.deviceId === deviceId);
    await this.whileListing();
    return { servers: [...this.servers], connections };
  }

  async close(connection: DeviceConnection): Promise<void> {
    this.closed.push(connection);
    this.leave(connection);
  }

  /** A device logs in; `heard` tells whether services are told. */
  login(deviceId: string, { heard = true, serverId = "S1" } = {}): DeviceConnection {
    const connection = { deviceId, serverId, connectionId: ++this.#numbers };
    this.open.add(connection);
    if (heard) for (const listener of this.#listeners) listener.connected(connection);
    return connection;
  }

  leave(connection: DeviceConnection, { heard = true } = {}): void {
    if (!this.open.delete(connection) || !heard) return;
    for (const listener of this.#listeners) listener.disconnected(connection);
  }

  /** The broker as one process of the service sees it; `end` when that has died: it hears nothing any more. */
  forOneLife(): DeviceConnections & { end(): void } {
    const mine = new Set<ConnectionListener>();
    return {
      follow: (listener) => {
        mine.add(listener);
        return this.follow(listener);
      },
      list: (call, deviceId) => this.list(call, deviceId),
      close: (connection) => this.close(connection),
      end: () => {
        for (const listener of mine) this.#listeners.delete(listener);
      },
    };
  }

  /** The service's own connection to the broker was lost and came back. */
  reconnect(): void {
    for (const listener of this.#listeners) listener.missed();
  }
}
