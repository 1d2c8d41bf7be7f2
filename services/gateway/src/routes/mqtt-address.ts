import type { masterKey } from "@devmesh/contracts/rest/master-key";
import type { Handlers } from "../http/handlers.ts";
import { json } from "../http/reply.ts";
import { mqttAddressOf } from "./published-mqtt-address.ts";

/** Where devices connect, as the gateway was told by `MQTT_PUBLIC_URL`. */
export function mqttAddressHandlers(
  publicUrl: string | undefined,
): Handlers<keyof Pick<typeof masterKey, "readMqttAddress">> {
  const address = JSON.stringify(mqttAddressOf(publicUrl));
  return { readMqttAddress: async () => json(address) };
}
