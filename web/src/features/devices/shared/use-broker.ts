import type { MqttAddress } from "@devmesh/contracts/model/mqtt-address";
import { useQuery } from "@tanstack/react-query";
import { useApi } from "../../../api/api-context.tsx";
import { queryKeys } from "../../../api/query-keys.ts";

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
