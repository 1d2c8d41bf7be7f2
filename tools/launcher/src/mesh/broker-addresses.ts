import type { Address } from "./broker-process.ts";
import type { MeshSettings } from "./settings.ts";

/** Where the broker of a mesh is. */
export interface BrokerAddresses {
  /** NATS listeners; one of them is enough. */
  readonly servers: readonly Address[];
  /** One or more, comma-separated, like `mqttUrl`. */
  readonly natsUrl: string;
  readonly mqttUrl: string;
  /** Where devices reach it. */
  readonly mqttPublicUrl: string;
}

/** Where the broker is: on this machine, or where NATS_URL says. */
export function brokerAddresses(settings: MeshSettings): BrokerAddresses {
  const own = bracketed(reachable(settings.host));
  const natsUrls =
    settings.natsUrls.length > 0 ? settings.natsUrls : [`nats://${own}:${String(settings.natsPort)}`];
  const servers = natsUrls.map((url) => new URL(url));
  const mqttAt = (host: string) =>
    `${settings.mqttTls ? "mqtts" : "mqtt"}://${host}:${String(settings.mqttPort)}`;
  const mqttUrls = settings.mqttUrls.length > 0 ? settings.mqttUrls : [mqttAt(servers[0]?.hostname ?? own)];
  const [listener = mqttAt(own)] =
    settings.natsUrls.length > 0 ? mqttUrls : [mqttAt(bracketed(settings.host))];
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

function bracketed(host: string): string {
  return host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
}

/** The address to connect to: the loopback where the server listens on all addresses. */
export function reachable(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  return host === "::" ? "::1" : host;
}
