import type { MqttAddress } from "@devmesh/contracts/model/mqtt-address";

/** Hosts that stand for all addresses of a machine. */
const everyAddress = new Set(["0.0.0.0", "[::]"]);

/** The address in `MQTT_PUBLIC_URL`; without one, the standard port beside the gateway. */
export function mqttAddressOf(url: string | undefined): MqttAddress {
  if (url === undefined) return { host: null, port: 1883, tls: false };
  const { protocol, hostname, port } = new URL(url);
  const tls = protocol === "mqtts:";
  return {
    host: everyAddress.has(hostname) ? null : hostname.replace(/^\[|\]$/g, ""),
    port: port === "" ? (tls ? 8883 : 1883) : Number(port),
    tls,
  };
}
