/** What a device connects with. */
export interface DeviceConnection {
  readonly id: string;
  /** Its MQTT password. */
  readonly token: string;
  /** Host that the dashboard came from; the broker stands beside it. */
  readonly host: string;
}

/** A command that connects as the device, shows what it is sent, calls of its functions among them. */
export function mqttSnippet({ id, token, host }: DeviceConnection): string {
  return [
    `mosquitto_sub -h ${host} -p 1883 -i ${id} -u ${id} -P ${token} \\`,
    `  -t ${id}/rpc -t ${id}/shadow/delta -v`,
  ].join("\n");
}

/** A command that stores a value as the device. */
export function mqttPublishSnippet({ id, token, host }: DeviceConnection): string {
  return [
    `mosquitto_pub -h ${host} -p 1883 -i ${id}:sensor -u ${id} -P ${token} \\`,
    `  -t db/${id}/temperature -q 1 -m '{"celsius":21.5}'`,
  ].join("\n");
}

/** A command that reads the device over the REST API; the key is to be put in by who runs it. */
export function curlSnippet(id: string, origin: string): string {
  return `curl -s -H "Authorization: Bearer $KEY" ${origin}/api/v2/devices/${id}`;
}
