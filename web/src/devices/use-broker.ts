import type { MqttAddress } from "@devmesh/contracts/model/mqtt-address";
import { useQuery } from "@tanstack/react-query";
import { useApi } from "../api/api-context.tsx";
import { queryKeys } from "../api/query-keys.ts";

/** What is believed of the broker until the gateway has told more. */
const standard: MqttAddress = { host: null, port: 1883, tls: false };

/** Where devices connect, and the host that the page came from, for commands that do the same. */
export function useBroker(): { readonly broker: MqttAddress; readonly host: string } {
  const api = useApi();
  const { data } = useQuery({
    queryKey: queryKeys.mqttAddress,
    queryFn: ({ signal }) => api.call("readMqttAddress", { signal }),
    staleTime: "static",
  });
  return { broker: data ?? standard, host: window.location.hostname };
}
