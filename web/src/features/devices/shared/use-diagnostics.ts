import { diagnosisFrames } from "@devmesh/contracts/model/diagnostics";
import { useQueryClient } from "@tanstack/react-query";
import { useApi } from "../../../api/api-context.tsx";
import { queryKeys } from "../../../api/query-keys.ts";
import { useReading } from "../../../api/use-reading.ts";
import { useFrames } from "../../../live/live-updates.tsx";

/** Interval of reading, in milliseconds: not every entry has a frame. */
const readEveryMs = 10_000;

/** Frames after which there is more to read. */
const causes: ReadonlySet<string> = new Set([...diagnosisFrames, "online", "offline", "throttled"]);

/** Diagnostics of a device, newest first, kept current. */
export function useDiagnostics(id: string) {
  const api = useApi();
  const queries = useQueryClient();
  useFrames((frames) => {
    if (frames.some((frame) => frame.id === id && causes.has(frame.name)))
      void queries.invalidateQueries({ queryKey: queryKeys.diagnostics(id) });
  });
  return useReading({
    queryKey: queryKeys.diagnostics(id),
    queryFn: ({ signal }) => api.call("readDiagnostics", { params: { id }, signal }),
    refetchInterval: readEveryMs,
    staleTime: 0,
  });
}
