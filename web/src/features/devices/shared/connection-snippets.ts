import type { MqttAddress } from "@devmesh/contracts/model/mqtt-address";
import { useQuery } from "@tanstack/react-query";
import { useApi } from "../../../api/api-context.tsx";
import { queryKeys } from "../../../api/query-keys.ts";

/** Options of a device's connection. */
export interface DeviceConnection {
  readonly id: string;
  /** Its MQTT password. */
  readonly token: string;
  readonly broker: MqttAddress;
  /** Host of the dashboard, if the broker has none of its own. */
  readonly host: string;
}

/** A command that connects as the device, shows what it is sent, calls of its functions among them. */
export function mqttSnippet(connection: DeviceConnection): string {
  const { id } = connection;
  return `mosquitto_sub ${loginOf(connection, id)} \\\n  -t ${id}/rpc -t ${id}/shadow/delta -v`;
}

/** A command that stores a value as the device. */
export function mqttPublishSnippet(connection: DeviceConnection): string {
  const { id } = connection;
  const login = loginOf(connection, `${id}:sensor`);
  return `mosquitto_pub ${login} \\\n  -t db/${id}/temperature -q 1 -m '{"celsius":21.5}'`;
}

/** A command that reads the device over the REST API, with the key in `$KEY`. */
export function curlSnippet(id: string, origin: string): string {
  return `curl -s -H "Authorization: Bearer $KEY" ${origin}/api/v2/devices/${id}`;
}

/** Options of the mosquitto clients; with TLS they trust the system's certificates. */
function loginOf({ id, token, broker, host }: DeviceConnection, clientId: string): string {
  const tls = broker.tls ? " --tls-use-os-certs" : "";
  // The host of a page's address has its IPv6 addresses in brackets.
  const name = (broker.host ?? host).replace(/^\[|\]$/g, "");
  return `-h ${name} -p ${broker.port}${tls} -i ${clientId} -u ${id} -P ${token}`;
}

/** The broker's address until the gateway has returned it. */
const standard: MqttAddress = { host: null, port: 1883, tls: false };

/** Address of the broker, and the page's host, for connection snippets. */
export function useBroker(): { readonly broker: MqttAddress; readonly host: string } {
  const api = useApi();
  const { data } = useQuery({
    queryKey: queryKeys.mqttAddress,
    queryFn: ({ signal }) => api.call("readMqttAddress", { signal }),
    staleTime: "static",
  });
  return { broker: data ?? standard, host: window.location.hostname };
}
