import { Socket } from "node:net";
import { pinnedCertificate } from "@devmesh/device-broker/pinned-certificate";
import type { Clock } from "@devmesh/service-kit/clock";
import type { Logger } from "@devmesh/service-kit/logger";
import { connect, type MqttClient } from "mqtt";

/** How the bridge logs in to the broker's MQTT listener: as a static user of account DEVICES, past the auth callout. */
export interface BrokerLogin {
  /** `mqtt://host:port` or `mqtts://`, at least one: the listeners of a cluster's servers, of which any will do. */
  readonly urls: readonly string[];
  readonly user: string;
  readonly password: string;
  /**
   * PEM file of the one certificate to accept, whatever host it names; otherwise one for the host of each of `urls`.
   */
  readonly tlsCert?: string | undefined;
}

/** What {@link openMqttLink} needs. */
export interface MqttLinkOptions {
  readonly login: BrokerLogin;
  /**
   * Must differ between processes and be no device's client id, or one would take over the other's session: begin it
   * with a character that no device id begins with.
   */
  readonly clientId: string;
  /** After each login. Must not throw. */
  readonly onConnect?: () => void;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * A connection to one of the broker's MQTT listeners that is replaced whenever it is lost, by one to the next
 * listener.
 */
export interface MqttLink {
  /** Whether messages reach the broker now. */
  readonly connected: boolean;
  /** Resolves at the first login. Rejects when the link is closed before. */
  readonly ready: Promise<void>;
  /**
   * Publishes at QoS 1 and resolves when the broker has acknowledged, which for a retained message means stored.
   * Rejects when the connection is lost before: whether it arrived is then not known, and it is not sent again.
   * At QoS 0 it resolves once the message is sent; an acknowledgement of a later one covers it.
   */
  publish(
    topic: string,
    payload: string | Buffer,
    options?: { readonly retain?: boolean; readonly qos?: 0 | 1 },
  ): Promise<void>;
  /** Waits for the acknowledgements of what was published, unless forced. */
  close(options?: { readonly force?: boolean }): Promise<void>;
}

/** Wait before a lost connection is replaced, in milliseconds; jittered by half. */
const reconnectAfterMs = 500;

/**
 * How long a login may take, in milliseconds. A server of a cluster that begins one while its streams have no leader
 * never answers it; the next one, begun after the election, is answered at once.
 */
const loginMs = 2_500;

/** Opens a link; it is not connected yet. A refused login is logged and tried again. */
export function openMqttLink(options: MqttLinkOptions): MqttLink {
  const { login, clientId, clock, log } = options;
  const ready = Promise.withResolvers<void>();
  ready.promise.catch(() => undefined);
  let client: MqttClient | null = null;
  let connected = false;
  let closed = false;
  let cancelReconnect: () => void = () => undefined;
  /** Begins anywhere, so that replicas and their links spread over the servers. */
  let turn = Math.floor(Math.random() * login.urls.length);

  function connectLater(): void {
    if (!closed) cancelReconnect = clock.schedule(reconnectAfterMs * (0.5 + Math.random()), connectOnce);
  }

  function connectOnce(): void {
    const url = login.urls[turn++ % login.urls.length] ?? "";
    let connection: MqttClient;
    try {
      connection = connectMqtt(login, url, clientId);
    } catch (error) {
      // The file of the certificate may be missing for the moment of its renewal.
      log.warn({ err: error, client_id: clientId, url }, "MQTT connection failed");
      connectLater();
      return;
    }
    client = connection;
    connection.on("error", (error) =>
      log.warn({ err: error, client_id: clientId, url }, "MQTT connection failed"),
    );
    connection.on("close", () => {
      if (client !== connection) return;
      client = null;
      if (connected) log.warn({ client_id: clientId, url }, "lost the MQTT connection to the broker");
      connected = false;
      connection.end(true);
      connectLater();
    });
    connection.on("connect", () => {
      if (client !== connection) return;
      connected = true;
      log.info({ client_id: clientId, url }, "connected to the broker by MQTT");
      ready.resolve();
      options.onConnect?.();
    });
  }

  connectOnce();
  return {
    get connected() {
      return connected;
    },
    ready: ready.promise,
    async publish(topic, payload, { retain = false, qos = 1 } = {}) {
      if (!connected || client === null) throw new Error("no MQTT connection to the broker");
      await client.publishAsync(topic, payload, { qos, retain });
    },
    async close({ force = false } = {}) {
      closed = true;
      connected = false;
      cancelReconnect();
      ready.reject(new Error("the MQTT link was closed"));
      await client?.endAsync(force);
    },
  };
}

/**
 * One connection, to the listener at `url`, that begins without a session and is not replaced when lost. Small
 * packets leave at once (TCP_NODELAY): otherwise each acknowledgement costs 40 ms. The caller listens to its `error`.
 */
export function connectMqtt(
  { user, password, tlsCert }: Omit<BrokerLogin, "urls">,
  url: string,
  clientId: string,
): MqttClient {
  const client = connect(url, {
    ...(tlsCert === undefined ? {} : pinnedCertificate(tlsCert)),
    protocolVersion: 4,
    username: user,
    password,
    clientId,
    clean: true,
    keepalive: 30,
    connectTimeout: loginMs,
    reconnectPeriod: 0,
    resubscribe: false,
    queueQoSZero: false,
  });
  client.on("connect", () => {
    if (client.stream instanceof Socket) client.stream.setNoDelay(true);
  });
  return client;
}
