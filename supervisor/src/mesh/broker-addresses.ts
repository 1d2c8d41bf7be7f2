import type { BrokerAddress } from "./broker-process.ts";
import type { MeshSettings } from "./settings.ts";

/** Where the broker of a mesh is. */
export interface BrokerAddresses {
  /** NATS listeners; one of them is enough. */
  readonly servers: readonly BrokerAddress[];
  /** One or more, comma-separated, like `mqttUrl`. */
  readonly natsUrl: string;
  readonly mqttUrl: string;
  /** Where devices reach it. */
  readonly mqttPublicUrl: string;
}

/** Where the broker is: on this machine, or where NATS_URL says. */
export function brokerAddresses(settings: MeshSettings): BrokerAddresses {
  const isOwn = settings.natsUrls.length === 0;
  const natsHost = bracketed(reachable(settings.natsHost));
  const natsUrls = isOwn ? [`nats://${natsHost}:${String(settings.natsPort)}`] : settings.natsUrls;
  const servers = natsUrls.map((url) => new URL(url));
  const mqttAt = (host: string) =>
    `${settings.mqttTls ? "mqtts" : "mqtt"}://${host}:${String(settings.mqttPort)}`;
  const mqttHost = isOwn ? bracketed(reachable(settings.mqttHost)) : (servers[0]?.hostname ?? natsHost);
  const mqttUrls = settings.mqttUrls.length > 0 ? settings.mqttUrls : [mqttAt(mqttHost)];
  const [listener = mqttAt(mqttHost)] = isOwn ? [mqttAt(bracketed(settings.mqttHost))] : mqttUrls;
  return {
    servers: servers.map(({ hostname, port }) => ({
      host: hostname.replace(/^\[|\]$/g, ""),
      port: Number(port || 4222),
    })),
    natsUrl: servers
      .map(({ protocol, hostname, port }) => `${protocol}//${hostname}:${port || "4222"}`)
      .join(","),
    mqttUrl: mqttUrls.join(","),
    mqttPublicUrl: settings.mqttPublicUrl ?? listener,
  };
}

/**
 * The warning where strangers reach MQTT without a proxy, since nats-server has no bound before a login. Null where it
 * listens on the loopback, or is not ours.
 */
export function proxyAdvice({ mqttHost, natsUrls }: MeshSettings): string | null {
  if (natsUrls.length > 0 || /^(127\.|::1$|localhost$)/.test(mqttHost)) return null;
  return (
    `MQTT listens on ${mqttHost} without a proxy. Strangers who reach it can fill the broker's memory: ` +
    "on the internet, put HAProxy in front, with k8s/components/mqtt-proxy/haproxy.cfg (docs/operations/devices-on-the-internet.md)."
  );
}

function bracketed(host: string): string {
  return host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
}

/** The address to connect to: the loopback where the server listens on all addresses. */
export function reachable(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  return host === "::" ? "::1" : host;
}
