import type { Job } from "@devmesh/contracts/model/job";
import { useQuery } from "@tanstack/react-query";
import { useApi } from "../../api/api-context.tsx";
import { queryKeys } from "../../api/query-keys.ts";

/** Jobs that are listed; older ones are in the API. */
const mostListed = 200;

/** The newest jobs; frames keep them current. */
export function useJobs() {
  const api = useApi();
  return useQuery({
    queryKey: queryKeys.jobs,
    queryFn: ({ signal }) => api.call("listJobs", { query: { limit: mostListed }, signal }),
    staleTime: 0,
  });
}

/** One job; frames keep it current. */
export function useJob(id: string) {
  const api = useApi();
  return useQuery<Job>({
    queryKey: queryKeys.job(id),
    queryFn: ({ signal }) => api.call("readJob", { params: { id }, signal }),
    staleTime: 0,
  });
}
