import type { MqttAddress } from "@devmesh/contracts/model/mqtt-address";

const wildcardHosts = new Set(["0.0.0.0", "[::]"]);

/** The address in `MQTT_PUBLIC_URL`; without one, the default port on the gateway's host. */
export function mqttAddressOf(url: string | undefined): MqttAddress {
  if (url === undefined) return { host: null, port: 1883, tls: false };
  const { protocol, hostname, port } = new URL(url);
  const tls = protocol === "mqtts:";
  return {
    host: wildcardHosts.has(hostname) ? null : hostname.replace(/^\[|\]$/g, ""),
    port: port === "" ? (tls ? 8883 : 1883) : Number(port),
    tls,
  };
}
