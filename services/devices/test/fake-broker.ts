import type {
  BusiestConnections,
  DeviceConnectionEvent,
  DeviceConnections,
  OpenDeviceConnection,
  Traffic,
} from "@devmesh/device-broker/connections";
import type { Clock } from "@devmesh/service-kit/clock";
import type {
  BrokerConnections,
  ConnectionKey,
  ConnectionListener,
} from "../src/connections/broker-connections.ts";

interface Accepted {
  readonly connection: ConnectionKey;
  readonly mqttClientId: string;
  readonly acceptedMs: number;
  received: Traffic;
}

const nothing: Traffic = { messages: 0, bytes: 0 };

/** The broker's side of device connections, moved by the test. */
export class FakeBroker implements BrokerConnections {
  /** By number, with the time at which each was accepted. */
  readonly #open = new Map<number, Accepted>();
  /** Servers that answer a listing. */
  readonly servers = new Set(["S1", "S2"]);
  /** Connections that were closed, also those that were gone. */
  readonly closed: ConnectionKey[] = [];
  /** Those of them whose wills were published. */
  readonly wills: ConnectionKey[] = [];
  /** Runs while a listing of all, or of one device, is under way, after its content is fixed. */
  whileListing: () => void | Promise<void> = () => undefined;
  readonly #listeners = new Set<ConnectionListener>();
  readonly #clock: Clock;
  #numbers = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get open(): ConnectionKey[] {
    return [...this.#open.values()].map(({ connection }) => connection);
  }

  follow(listener: ConnectionListener): () => Promise<void> {
    this.#listeners.add(listener);
    return async () => void this.#listeners.delete(listener);
  }

  async list(_call: unknown, deviceId?: string): Promise<DeviceConnections> {
    const connections = this.#listed().filter(
      (listed) => deviceId === undefined || listed.deviceId === deviceId,
    );
    await this.whileListing();
    return { servers: new Map([...this.servers].map((id) => [id, id])), connections };
  }

  async listBusiest(): Promise<BusiestConnections> {
    const othersIdleMs = new Map([...this.servers].map((id) => [id, Number.POSITIVE_INFINITY]));
    return { othersIdleMs, connections: this.#listed() };
  }

  #listed(): OpenDeviceConnection[] {
    return [...this.#open.values()].map(({ connection, mqttClientId, acceptedMs, received }) => ({
      ...connection,
      mqttClientId,
      address: "10.0.0.1",
      acceptedMs,
      listedMs: this.#clock.monotonicMs(),
      idleMs: 0,
      received,
    }));
  }

  /** A device sends over a connection. */
  send(connection: ConnectionKey, { messages, bytes }: Traffic): void {
    const open = this.#open.get(connection.connectionId);
    if (open === undefined) return;
    open.received = { messages: open.received.messages + messages, bytes: open.received.bytes + bytes };
  }

  async close(listed: ConnectionKey): Promise<void> {
    const { connection } = this.#open.get(listed.connectionId) ?? { connection: listed };
    this.wills.push(connection);
    this.#close(connection);
  }

  /** The bridge takes sessions over. */
  takeOver(deviceId: string, clientIds: readonly string[]): void {
    for (const { connection, mqttClientId } of [...this.#open.values()])
      if (connection.deviceId === deviceId && clientIds.includes(mqttClientId)) this.#close(connection);
  }

  #close(connection: ConnectionKey): void {
    this.closed.push(connection);
    this.leave(connection);
  }

  /** A device logs in; `published`: services get an event. */
  login(
    deviceId: string,
    { published = true, serverId = "S1", acceptedMs = this.#clock.monotonicMs() } = {},
  ): ConnectionKey {
    const connectionId = ++this.#numbers;
    const connection = { deviceId, serverId, connectionId };
    const accepted = {
      connection,
      mqttClientId: `${deviceId}:${connectionId}`,
      acceptedMs,
      received: nothing,
    };
    this.#open.set(connectionId, accepted);
    if (published) {
      const event = this.#event(accepted, null);
      for (const listener of this.#listeners) listener.connected(event);
    }
    return connection;
  }

  leave(connection: ConnectionKey, { published = true, reason = "client_closed" } = {}): void {
    const open = this.#open.get(connection.connectionId);
    if (open === undefined) return;
    this.#open.delete(connection.connectionId);
    const event = this.#event(open, reason);
    if (published) for (const listener of this.#listeners) listener.disconnected(event);
  }

  #event(
    { connection, mqttClientId, acceptedMs, received }: Accepted,
    reason: string | null,
  ): DeviceConnectionEvent {
    const openMs = this.#clock.monotonicMs() - acceptedMs;
    const at = this.#clock.now();
    return { ...connection, mqttClientId, address: "10.0.0.1", at, openMs, received, reason };
  }

  /** The broker as one process of the service sees it; `end` when that has died: it gets no more events. */
  forOneLife(): BrokerConnections & { end(): void } {
    const mine = new Set<ConnectionListener>();
    return {
      follow: (listener) => {
        mine.add(listener);
        return this.follow(listener);
      },
      list: (call, deviceId) => this.list(call, deviceId),
      listBusiest: () => this.listBusiest(),
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
