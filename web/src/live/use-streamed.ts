import { hashKey, type QueryKey, skipToken, useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";

/**
 * Server data in the query cache that only streams and calls write; `initial` is a constant. The cache drops it after
 * `gcTime` milliseconds without an observer.
 */
export function useStreamed<T>(
  queryKey: QueryKey,
  initial: T,
  gcTime = 0,
): readonly [data: T, update: (change: (before: T) => T) => void] {
  const queries = useQueryClient();
  const { data = initial } = useQuery<T>({ queryKey, queryFn: skipToken, gcTime, structuralSharing: false });
  // biome-ignore lint/correctness/useExhaustiveDependencies: keys with the same hash are the same
  const update = useCallback(
    (change: (before: T) => T) => {
      queries.setQueryData<T>(queryKey, (before) => change(before ?? initial));
    },
    [queries, hashKey(queryKey), initial],
  );
  return [data, update];
}
