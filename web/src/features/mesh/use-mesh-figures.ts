import type { MeshHistory } from "@devmesh/contracts/model/mesh-history";
import { useApi } from "../../api/api-context.tsx";
import { queryKeys } from "../../api/query-keys.ts";
import { useReading } from "../../api/use-reading.ts";
import { figuresTogether, type MeshFigures, type MeshObservation } from "./observation.ts";

/** How often the course of the day is read again, in milliseconds: a minute is added to it each minute. */
const historyMs = 60_000;

/** What the mesh does now and did in the last day. Until there are two readings, rates are of the last minute. */
export function useMeshFigures(observation: MeshObservation | null): {
  readonly figures: MeshFigures | null;
  /** Null until it is read. */
  readonly history: MeshHistory | null;
} {
  const api = useApi();
  const { data: history = null } = useReading({
    queryKey: queryKeys.meshHistory,
    queryFn: ({ signal }) => api.call("readMeshHistory", { signal }),
    refetchInterval: historyMs,
  });
  if (observation === null) return { figures: null, history };
  const now = figuresTogether(observation);
  const minute = history?.at(-1);
  return {
    figures: {
      ...now,
      recordsPerSecond: now.recordsPerSecond ?? minute?.records ?? null,
      loginsPerSecond: now.loginsPerSecond ?? minute?.logins ?? null,
      refusedPerSecond: now.refusedPerSecond ?? minute?.logins_refused ?? null,
      deviceCallsPerSecond: now.deviceCallsPerSecond ?? minute?.device_calls ?? null,
    },
    history,
  };
}
