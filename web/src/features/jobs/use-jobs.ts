import type { Job } from "@devmesh/contracts/model/job";
import { useApi } from "../../api/api-context.tsx";
import { queryKeys } from "../../api/query-keys.ts";
import { useReading } from "../../api/use-reading.ts";

/** Jobs that are listed; older ones are in the API. */
const mostListed = 200;

/** The newest jobs; frames keep them current. */
export function useJobs() {
  const api = useApi();
  return useReading({
    queryKey: queryKeys.jobs,
    queryFn: ({ signal }) => api.call("listJobs", { query: { limit: mostListed }, signal }),
    staleTime: 0,
  });
}

/** One job; frames keep it current. */
export function useJob(id: string) {
  const api = useApi();
  return useReading<Job>({
    queryKey: queryKeys.job(id),
    queryFn: ({ signal }) => api.call("readJob", { params: { id }, signal }),
    staleTime: 0,
  });
}
