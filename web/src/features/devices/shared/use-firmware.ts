import { useApi } from "../../../api/api-context.tsx";
import { queryKeys } from "../../../api/query-keys.ts";
import { useReading } from "../../../api/use-reading.ts";

/** Files that are listed; older ones are in the API. */
export const mostFirmware = 200;

/** How often the files are read again, in milliseconds: no frame announces what others upload. */
const rereadMs = 30_000;

/** The newest firmware; not read unless `enabled`. */
export function useFirmware({ enabled }: { readonly enabled: boolean } = { enabled: true }) {
  const api = useApi();
  return useReading({
    queryKey: queryKeys.firmware,
    queryFn: ({ signal }) => api.call("listFirmware", { query: { limit: mostFirmware }, signal }),
    staleTime: 0,
    enabled,
    refetchInterval: rereadMs,
  });
}
