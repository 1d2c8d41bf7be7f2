import { useApi } from "../../../api/api-context.tsx";
import { queryKeys } from "../../../api/query-keys.ts";
import { useReading } from "../../../api/use-reading.ts";

/** Where a device connects. */
export interface Broker {
  /** Name or address, an IPv6 one without brackets. */
  readonly host: string;
  readonly port: number;
  readonly tls: boolean;
}

/**
 * Where devices connect; null until the gateway has answered. If it fails to, the host of the page and MQTT's usual
 * port.
 */
export function useBroker(): Broker | null {
  const api = useApi();
  const { data, isPending } = useReading({
    queryKey: queryKeys.mqttAddress,
    queryFn: ({ signal }) => api.call("readMqttAddress", { signal }),
    staleTime: "static",
  });
  if (isPending) return null;
  const { host = null, port = 1883, tls = false } = data ?? {};
  // The host of a page's address has its IPv6 addresses in brackets.
  return { host: host ?? window.location.hostname.replace(/^\[|\]$/g, ""), port, tls };
}
