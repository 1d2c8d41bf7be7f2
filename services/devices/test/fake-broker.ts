import type { Clock } from "@devmesh/service-kit/clock";
import type {
  ConnectionListener,
  DeviceConnection,
  DeviceConnections,
  ListedConnections,
  OpenConnection,
} from "../src/presence/device-connections.ts";

interface Accepted {
  readonly connection: DeviceConnection;
  readonly mqttClientId: string;
  readonly acceptedMs: number;
}

/** The broker's side of device connections, moved by the test. */
export class BrokerStandIn implements DeviceConnections {
  /** By number, with the time at which each was accepted. */
  readonly #open = new Map<number, Accepted>();
  /** Servers that answer a listing. */
  readonly servers = new Set(["S1", "S2"]);
  /** Connections that were closed, also those that were gone. */
  readonly closed: DeviceConnection[] = [];
  /** Those of them whose wills were published. */
  readonly wills: DeviceConnection[] = [];
  /** Runs while a listing is under way, after its content is fixed. */
  whileListing: () => void | Promise<void> = () => undefined;
  readonly #listeners = new Set<ConnectionListener>();
  readonly #clock: Clock;
  #numbers = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get open(): DeviceConnection[] {
    return [...this.#open.values()].map(({ connection }) => connection);
  }

  follow(listener: ConnectionListener): () => Promise<void> {
    this.#listeners.add(listener);
    return async () => void this.#listeners.delete(listener);
  }

  async list(_call: unknown, deviceId?: string): Promise<ListedConnections<OpenConnection>> {
    const connections = [...this.#open.values()]
      .filter(({ connection }) => deviceId === undefined || connection.deviceId === deviceId)
      .map(({ connection, mqttClientId, acceptedMs }) => ({
        ...connection,
        mqttClientId,
        ageMs: this.#clock.monotonicMs() - acceptedMs,
        received: { messages: 0, bytes: 0 },
      }));
    await this.whileListing();
    return { servers: [...this.servers], connections };
  }

  async close(listed: DeviceConnection): Promise<void> {
    const { connection } = this.#open.get(listed.connectionId) ?? { connection: listed };
    this.wills.push(connection);
    this.#close(connection);
  }

  /** The bridge takes sessions over. */
  takeOver(deviceId: string, clientIds: readonly string[]): void {
    for (const { connection, mqttClientId } of [...this.#open.values()])
      if (connection.deviceId === deviceId && clientIds.includes(mqttClientId)) this.#close(connection);
  }

  #close(connection: DeviceConnection): void {
    this.closed.push(connection);
    this.leave(connection);
  }

  /** A device logs in; `heard` tells whether services are told. */
  login(
    deviceId: string,
    { heard = true, serverId = "S1", acceptedMs = this.#clock.monotonicMs() } = {},
  ): DeviceConnection {
    const connectionId = ++this.#numbers;
    const connection = { deviceId, serverId, connectionId };
    this.#open.set(connectionId, { connection, mqttClientId: `${deviceId}:${connectionId}`, acceptedMs });
    if (heard) for (const listener of this.#listeners) listener.connected(connection);
    return connection;
  }

  leave(connection: DeviceConnection, { heard = true } = {}): void {
    if (!this.#open.delete(connection.connectionId) || !heard) return;
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
