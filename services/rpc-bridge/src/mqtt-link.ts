import { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { pinnedCertificate } from "@devmesh/device-broker/pinned-certificate";
import type { Clock } from "@devmesh/service-kit/clock";
import type { Logger } from "@devmesh/service-kit/logger";
import { connect, type MqttClient } from "mqtt";

/** Login to the broker's MQTT listeners as a static user of account DEVICES, without the auth callout. */
export interface BrokerLogin {
  /** `mqtt://host:port` or `mqtts://` of one server or of those of a cluster; at least one. */
  readonly urls: readonly string[];
  readonly user: string;
  readonly password: string;
  /** PEM file of the one certificate to accept, whatever host it names. */
  readonly tlsCert?: string | undefined;
}

export interface MqttLinkOptions {
  readonly login: BrokerLogin;
  /** Unique, and no client id of a device: begin it with a character that no device id begins with. */
  readonly clientId: string;
  /** After each login. Must not throw. */
  readonly onConnect?: () => void;
  readonly clock: Clock;
  readonly log: Logger;
}

/** A connection to one of the broker's MQTT listeners; a lost one is replaced by one to the next listener. */
export interface MqttLink {
  /** Whether messages reach the broker now. */
  readonly connected: boolean;
  /** When the certificate that the broker showed expires, Unix milliseconds; null without TLS or a connection. */
  readonly certificateExpiresAt: number | null;
  /** Resolves at the first login. Rejects when the link is closed before. */
  readonly ready: Promise<void>;
  /**
   * At QoS 1 it resolves when the broker has acknowledged, which for a retained message means stored, and rejects when
   * the connection is lost: the message is not sent again. At QoS 0 it resolves once the message is sent.
   */
  publish(
    topic: string,
    payload: string | Buffer,
    options?: { readonly retain?: boolean; readonly qos?: 0 | 1 },
  ): Promise<void>;
  /** Waits for the acknowledgements of what was published, unless forced. */
  close(options?: { readonly force?: boolean }): Promise<void>;
}

/** Wait before a reconnect, in milliseconds; jittered by half. */
const reconnectAfterMs = 500;

/** Timeout of a login, in milliseconds. A server whose streams have no leader never answers it. */
const loginTimeoutMs = 2_500;

/** Opens a link, which connects in the background. */
export function openMqttLink(options: MqttLinkOptions): MqttLink {
  const { login, clientId, clock, log } = options;
  const ready = Promise.withResolvers<void>();
  ready.promise.catch(() => undefined);
  let client: MqttClient | null = null;
  let connected = false;
  let closed = false;
  let cancelReconnect: () => void = () => undefined;
  /** Starts at random, so that replicas spread over the servers. */
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
      // The certificate file may be missing during its renewal.
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
    get certificateExpiresAt() {
      const certificate =
        client?.stream instanceof TLSSocket ? client.stream.getPeerX509Certificate() : undefined;
      return certificate?.validToDate.getTime() ?? null;
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
 * One connection with a clean session and without reconnects; the caller must handle its `error`. Without TCP_NODELAY
 * each acknowledgement would cost 40 ms.
 */
export function connectMqtt(
  { user, password, tlsCert }: Omit<BrokerLogin, "urls">,
  url: string,
  clientId: string,
): MqttClient {
  const { protocol, hostname, port } = new URL(url);
  // In members: MQTT.js parses a URL by the deprecated `url.parse`.
  const client = connect({
    protocol: protocol === "mqtts:" ? "mqtts" : "mqtt",
    // An IPv6 address is in brackets in a URL only.
    host: hostname.replace(/^\[(.*)\]$/, "$1"),
    ...(port === "" ? {} : { port: Number(port) }),
    ...(tlsCert === undefined ? {} : pinnedCertificate(tlsCert)),
    protocolVersion: 4,
    username: user,
    password,
    clientId,
    clean: true,
    keepalive: 30,
    connectTimeout: loginTimeoutMs,
    reconnectPeriod: 0,
    resubscribe: false,
    queueQoSZero: false,
  });
  client.on("connect", () => {
    if (client.stream instanceof Socket) client.stream.setNoDelay(true);
  });
  return client;
}
