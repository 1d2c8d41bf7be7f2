import { Socket } from "node:net";
import { pinnedCertificate } from "@devmesh/device-broker/pinned-certificate";
import { connect, type IClientOptions, type MqttClient, type OnMessageCallback } from "mqtt";

/** A device's login: its id as user name, its `dt_` token as password (api.md, MQTT). */
export interface DeviceLogin {
  /** `mqtt://host:port`, `mqtts://`, `ws://` or `wss://`; several, comma-separated, are tried in turn. */
  readonly url: string;
  readonly id: string;
  readonly token: string;
  /** Default: the device id; may also be `ID:<suffix>` or empty. */
  readonly clientId?: string;
  /** PEM file of the only certificate to accept, for any host; default: the system's authorities. */
  readonly tlsCert?: string | undefined;
}

/**
 * Connects a device by MQTT.js; throws when the broker does not accept the first login. TCP_NODELAY is set, since
 * otherwise each acknowledgement costs 40 ms. `take` gets every message.
 */
export async function connectDevice(
  login: DeviceLogin,
  take: OnMessageCallback,
  options: IClientOptions = {},
): Promise<MqttClient> {
  const tls = login.tlsCert === undefined ? {} : pinnedCertificate(login.tlsCert);
  const servers = login.url.split(",");
  const client = connect(servers[0] ?? "", {
    ...tls,
    wsOptions: tls,
    protocolVersion: 4,
    username: login.id,
    password: login.token,
    clientId: login.clientId ?? login.id,
    connectTimeout: 5_000,
    reconnectPeriod: 0,
    ...(servers.length > 1 && { servers: servers.map(listenerOf) }),
    ...options,
  });
  // Before the login: messages queued for a session arrive together with CONNACK.
  client.on("message", take);
  client.on("connect", () => {
    if (client.stream instanceof Socket) client.stream.setNoDelay(true);
  });
  return await new Promise<MqttClient>((resolve, reject) => {
    const refuse = (cause?: Error) => {
      client.end(true);
      reject(cause ?? new Error(`${login.url} closed the connection`));
    };
    client.once("error", refuse);
    client.once("close", refuse);
    client.once("connect", () => {
      client.off("error", refuse);
      client.off("close", refuse);
      // An unhandled "error" event would end the process; later failures show as "close".
      client.on("error", () => {});
      resolve(client);
    });
  });
}

function listenerOf(url: string) {
  const { protocol, hostname, port } = new URL(url);
  const secure = protocol === "mqtts:";
  return {
    protocol: secure ? "mqtts" : "mqtt",
    host: hostname,
    port: Number(port || (secure ? 8883 : 1883)),
  } as const;
}
