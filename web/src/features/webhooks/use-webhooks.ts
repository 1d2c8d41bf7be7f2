import type { DeadDelivery, Webhook } from "@devmesh/contracts/model/webhook";
import { useQueryClient } from "@tanstack/react-query";
import { useApi } from "../../api/api-context.tsx";
import { queryKeys } from "../../api/query-keys.ts";
import { useReading } from "../../api/use-reading.ts";

/** How often states are read while they are shown, in milliseconds: no frame reports deliveries. */
const readMs = 5_000;

/** Events that were given up and are listed; newer ones are in the API. */
export const mostDead = 200;

/** All webhooks, oldest first. */
export function useWebhooks() {
  const api = useApi();
  return useReading<readonly Webhook[]>({
    queryKey: queryKeys.webhooks,
    queryFn: ({ signal }) => api.call("listWebhooks", { query: {}, signal }),
    staleTime: 0,
    refetchInterval: readMs,
  });
}

export function useWebhook(id: string) {
  const api = useApi();
  return useReading<Webhook>({
    queryKey: queryKeys.webhook(id),
    queryFn: ({ signal }) => api.call("readWebhook", { params: { id }, signal }),
    staleTime: 0,
    refetchInterval: readMs,
  });
}

/** What was given up, oldest first. */
export function useDeadDeliveries(id: string) {
  const api = useApi();
  return useReading<readonly DeadDelivery[]>({
    queryKey: queryKeys.deadDeliveries(id),
    queryFn: ({ signal }) =>
      api.call("listDeadDeliveries", { params: { id }, query: { limit: mostDead }, signal }),
    staleTime: 0,
    refetchInterval: readMs,
  });
}

/** Returns a function that reads all of the webhooks again. */
export function useWebhooksAgain(): () => Promise<void> {
  const queries = useQueryClient();
  return () => queries.invalidateQueries({ queryKey: queryKeys.webhooks });
}
