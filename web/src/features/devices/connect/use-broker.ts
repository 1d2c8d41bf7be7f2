import { useQuery } from "@tanstack/react-query";
import { useApi } from "../../../api/api-context.tsx";
import { queryKeys } from "../../../api/query-keys.ts";

/** Where a device connects. */
export interface Broker {
  /** Name or address, an IPv6 one without brackets. */
  readonly host: string;
  readonly port: number;
  readonly tls: boolean;
}

/** Where devices connect; until the gateway has answered, the host of the page and MQTT's usual port. */
export function useBroker(): Broker {
  const api = useApi();
  const { data } = useQuery({
    queryKey: queryKeys.mqttAddress,
    queryFn: ({ signal }) => api.call("readMqttAddress", { signal }),
    staleTime: "static",
  });
  const { host = null, port = 1883, tls = false } = data ?? {};
  // The host of a page's address has its IPv6 addresses in brackets.
  return { host: host ?? window.location.hostname.replace(/^\[|\]$/g, ""), port, tls };
}
