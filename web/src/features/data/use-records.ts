import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";
import { useApi } from "../../api/api-context.tsx";
import { queryKeys } from "../../api/query-keys.ts";
import { useReading } from "../../api/use-reading.ts";
import type { StreamState } from "../../live/lasting-stream.ts";
import { useDataFrames } from "../../live/use-data-frames.ts";
import { emptyList, type RecordList, withRecords } from "./record-list.ts";
import { readEarlier, readLater } from "./record-pages.ts";
import { type RecordChoice, recordsIn, selects } from "./record-selection.ts";

/** The records of a selection read so far. */
interface Records extends RecordList {
  readonly error: unknown;
  /** The newest records are not read yet. */
  readonly isPending: boolean;
  readonly isReading: boolean;
  readonly stream: StreamState;
  readonly readMore: () => void;
  readonly readAgain: () => void;
}

/**
 * Reads records backwards from the newest; while `live`, new records are added. `selection` needs a stable identity.
 */
export function useRecords(selection: RecordChoice, live: boolean): Records {
  const api = useApi();
  const queries = useQueryClient();
  const queryKey = useMemo(() => [...queryKeys.records, selection], [selection]);
  const held = () => queries.getQueryData<RecordList>(queryKey) ?? emptyList;
  const { data, error, isPending, isFetching, refetch } = useReading({
    queryKey,
    queryFn: async ({ signal }) => {
      const { records, hasEarlier } = await readEarlier(api, selection, null, signal);
      return withRecords(held(), records, hasEarlier);
    },
    // Frames keep the list up to date; reading it again would drop the earlier records.
    staleTime: "static",
    gcTime: 0,
    structuralSharing: false,
  });
  const more = useMutation({
    mutationKey: [...queryKey, "earlier"],
    mutationFn: async () => {
      const oldest = held().records.at(-1) ?? null;
      const page = await readEarlier(api, selection, oldest, new AbortController().signal);
      // A list that was read again meanwhile would get a gap.
      if (held().records.at(-1)?.id !== oldest?.id) return;
      queries.setQueryData(queryKey, withRecords(held(), page.records, page.hasEarlier));
    },
  });
  const readAgain = () => {
    more.reset();
    later.reset();
    void queries.resetQueries({ queryKey, exact: true });
  };
  const later = useMutation({
    mutationKey: [...queryKey, "later"],
    mutationFn: async () => {
      const newest = held().records[0];
      if (newest === undefined) return void (await refetch());
      const records = await readLater(api, selection, newest.id, new AbortController().signal);
      if (records === null) readAgain();
      else if (held().records.length > 0) queries.setQueryData(queryKey, withRecords(held(), records));
    },
  });
  const stream = useDataFrames({
    device: selection.device,
    enabled: live,
    onFrames(frames) {
      const arrived = recordsIn(frames).filter((record) => selects(selection, record));
      if (arrived.length > 0) queries.setQueryData(queryKey, withRecords(held(), arrived));
    },
    onMissed: () => later.mutate(),
  });

  const list = data ?? emptyList;
  const isReading = isFetching || more.isPending;
  return {
    ...list,
    error: error ?? more.error ?? later.error,
    isPending,
    isReading,
    stream,
    readMore: () => {
      if (list.hasEarlier && !list.isFull && !isReading) more.mutate();
    },
    readAgain,
  };
}
