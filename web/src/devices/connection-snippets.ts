import type { MqttAddress } from "@devmesh/contracts/model/mqtt-address";

/** What a device connects with. */
export interface DeviceConnection {
  readonly id: string;
  /** Its MQTT password. */
  readonly token: string;
  readonly broker: MqttAddress;
  /** Where the dashboard came from: the broker's host where it names none. */
  readonly host: string;
}

/** A command that connects as the device, shows what it is sent, calls of its functions among them. */
export function mqttSnippet(connection: DeviceConnection): string {
  const { id } = connection;
  return [`mosquitto_sub ${loginOf(connection, id)} \\`, `  -t ${id}/rpc -t ${id}/shadow/delta -v`].join(
    "\n",
  );
}

/** A command that stores a value as the device. */
export function mqttPublishSnippet(connection: DeviceConnection): string {
  const { id } = connection;
  return [
    `mosquitto_pub ${loginOf(connection, `${id}:sensor`)} \\`,
    `  -t db/${id}/temperature -q 1 -m '{"celsius":21.5}'`,
  ].join("\n");
}

/** A command that reads the device over the REST API; the key is to be put in by who runs it. */
export function curlSnippet(id: string, origin: string): string {
  return `curl -s -H "Authorization: Bearer $KEY" ${origin}/api/v2/devices/${id}`;
}

/** Options of the mosquitto clients; by TLS they trust whom the system trusts. */
function loginOf({ id, token, broker, host }: DeviceConnection, clientId: string): string {
  const tls = broker.tls ? " --tls-use-os-certs" : "";
  // The host of a page's address has its IPv6 addresses in brackets.
  const name = (broker.host ?? host).replace(/^\[|\]$/g, "");
  return `-h ${name} -p ${broker.port}${tls} -i ${clientId} -u ${id} -P ${token}`;
}
