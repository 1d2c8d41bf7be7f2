import type { Alert, AlertSummary } from "@devmesh/contracts/model/alert";
import type { AlertRule, Severity } from "@devmesh/contracts/model/rule";
import type { Silence } from "@devmesh/contracts/model/silence";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { z } from "zod";
import { useApi } from "../../api/api-context.tsx";
import { queryKeys } from "../../api/query-keys.ts";
import { useReading } from "../../api/use-reading.ts";

/** How often rules, channels and silences are read while they are shown, in milliseconds: no frame reports them. */
const readMs = 30_000;

/** Alerts that a list has; older ones are in the API. */
export const mostListed = 200;

/** Which alerts a list has; what is left out has any value. */
interface AlertSelection {
  readonly state?: Alert["state"];
  readonly severity?: z.output<typeof Severity>;
  readonly device_id?: string;
  readonly rule_id?: string;
}

/** How much fires, by severity and rule; read again when a frame reports an alert. */
export function useAlertSummary() {
  const api = useApi();
  return useReading<AlertSummary>({
    queryKey: queryKeys.alertSummary,
    queryFn: ({ signal }) => api.call("summarizeAlerts", { signal }),
  });
}

/** The newest alerts of a selection, at most `limit`; read again when a frame reports an alert. */
export function useAlerts(selection: AlertSelection, limit = mostListed) {
  const api = useApi();
  return useReading<readonly Alert[]>({
    queryKey: [...queryKeys.alerts, selection, limit],
    queryFn: ({ signal }) => api.call("listAlerts", { query: { ...selection, limit }, signal }),
    staleTime: 0,
    placeholderData: (before) => before,
  });
}

/** One alert; frames keep it current. */
export function useAlert(id: string) {
  const api = useApi();
  return useReading<Alert>({
    queryKey: queryKeys.alert(id),
    queryFn: ({ signal }) => api.call("readAlert", { params: { id }, signal }),
    staleTime: 0,
  });
}

/** All rules, oldest first. */
export function useRules() {
  const api = useApi();
  return useReading<readonly AlertRule[]>({
    queryKey: queryKeys.rules,
    queryFn: ({ signal }) => api.call("listRules", { query: {}, signal }),
    staleTime: 0,
    refetchInterval: readMs,
  });
}

/** One rule; not read unless `enabled`. */
export function useRule(id: string, { enabled }: { readonly enabled: boolean } = { enabled: true }) {
  const api = useApi();
  return useReading<AlertRule>({
    queryKey: queryKeys.rule(id),
    queryFn: ({ signal }) => api.call("readRule", { params: { id }, signal }),
    staleTime: 0,
    enabled,
  });
}

/** All channels, oldest first. */
export function useChannels() {
  const api = useApi();
  return useReading({
    queryKey: queryKeys.channels,
    queryFn: ({ signal }) => api.call("listChannels", { query: {}, signal }),
    staleTime: 0,
    refetchInterval: readMs,
  });
}

/** All silences, oldest first, those that ended within 7 days among them. */
export function useSilences() {
  const api = useApi();
  return useReading<readonly Silence[]>({
    queryKey: queryKeys.silences,
    queryFn: ({ signal }) => api.call("listSilences", { query: {}, signal }),
    staleTime: 0,
    refetchInterval: readMs,
  });
}

/** What is done with alerts: they are acknowledged, or get a note. */
interface AlertChange {
  readonly ids: readonly string[];
  readonly acknowledged?: true;
  /** Left out, the note stays. */
  readonly note?: string | null;
}

/** Changes alerts one after the other; those before an error stay changed. */
export function useAlertChange({ onSuccess }: { readonly onSuccess?: () => void } = {}) {
  const api = useApi();
  const queries = useQueryClient();
  return useMutation({
    async mutationFn({ ids, ...body }: AlertChange) {
      for (const id of ids) {
        const alert = await api.call("changeAlert", { params: { id }, body });
        queries.setQueryData<Alert>(queryKeys.alert(id), alert);
      }
    },
    onSettled: () =>
      Promise.all(
        [queryKeys.alerts, queryKeys.alertSummary].map((queryKey) => queries.invalidateQueries({ queryKey })),
      ),
    ...(onSuccess && { onSuccess }),
  });
}
