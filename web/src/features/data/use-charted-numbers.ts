import type { Notification } from "@devmesh/contracts/model/notification";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useEffect, useMemo, useRef, useState } from "react";
import { useApi } from "../../api/api-context.tsx";
import { queryKeys } from "../../api/query-keys.ts";
import { useReading } from "../../api/use-reading.ts";
import type { StreamState } from "../../live/lasting-stream.ts";
import { useDataFrames } from "../../live/use-data-frames.ts";
import { type ChartedNumbers, chartRecords, type RecordChart } from "./charted-records.ts";
import { type RecordChoice, recordsIn } from "./record-selection.ts";

/** Interval at which a range that ends now moves on, in milliseconds. */
const moveMs = 2_000;

/** The numbers to be charted. */
interface ChartedRange {
  readonly selection: RecordChoice;
  /** Length of a range that ends now and moves on, in milliseconds; null for the range of the selection. */
  readonly lastMs: number | null;
  /** Maximum of records to be read: the newest ones. */
  readonly mostRecords: number;
  /** New records are added. */
  readonly live: boolean;
  /** Called with all frames of the stream, which then begins with those of the last hour. */
  readonly onFrames?: (frames: readonly Notification[]) => void;
}

/** Numbers read so far, and the state of reading. */
interface UsedNumbers {
  /** Null until the first are read. */
  readonly numbers: ChartedNumbers | null;
  /** Unix ms; null for an open range. */
  readonly from: number | null;
  readonly to: number | null;
  readonly isReading: boolean;
  readonly error: unknown;
  readonly stream: StreamState;
  readonly readAgain: () => void;
}

/** Reads the numbers of a range backwards from the newest, then follows them live. */
export function useChartedNumbers(range: ChartedRange): UsedNumbers {
  const { selection, lastMs, mostRecords, live, onFrames } = range;
  const api = useApi();
  const queries = useQueryClient();
  const [now, setNow] = useState(Date.now);
  const current = useRef<RecordChart | null>(null);
  const queryKey = [...queryKeys.numbers, { ...selection, lastMs, mostRecords }];
  const query = useReading({
    queryKey,
    queryFn: async ({ signal }) => {
      for (;;) {
        const since = lastMs === null ? selection.since : new Date(Date.now() - lastMs).toISOString();
        let numbers: ChartedNumbers | null = null;
        const chart = chartRecords({
          api,
          selection: { ...selection, since },
          mostRecords,
          onChange(changed) {
            numbers = changed;
            const isShown = queries.getQueryCache().find({ queryKey }) !== undefined;
            if (isShown && current.current === chart) queries.setQueryData(queryKey, changed);
          },
        });
        current.current = chart;
        await chart.read(signal);
        // Records may be stored while the first page is read.
        if (await chart.catchUp(signal)) return numbers;
      }
    },
    // Frames keep the numbers up to date.
    staleTime: "static",
    gcTime: 0,
    structuralSharing: false,
  });
  const readAgain = () => {
    later.reset();
    void queries.resetQueries({ queryKey, exact: true });
  };
  const later = useMutation({
    mutationKey: [...queryKey, "later"],
    mutationFn: async () => {
      const isRead = await current.current?.catchUp(new AbortController().signal);
      if (isRead === false) readAgain();
    },
  });
  const stream = useDataFrames({
    device: selection.device,
    enabled: live,
    history: onFrames !== undefined,
    onFrames(frames) {
      current.current?.take(recordsIn(frames));
      onFrames?.(frames);
    },
    onMissed: () => later.mutate(),
  });

  useEffect(() => {
    if (lastMs === null || !live) return;
    const timer = setInterval(() => {
      setNow(Date.now());
      current.current?.dropBefore(Date.now() - lastMs);
    }, moveMs);
    return () => clearInterval(timer);
  }, [lastMs, live]);

  const numbers = query.data ?? null;
  const newest = useMemo(() => newestOf(numbers), [numbers]);
  // The server's clock may be ahead.
  const to = lastMs === null ? timeOf(selection.until) : Math.max(now, newest);
  const from = lastMs === null || to === null ? timeOf(selection.since) : to - lastMs;
  return {
    numbers,
    from,
    to,
    isReading: query.isFetching,
    error: query.error ?? later.error,
    stream,
    readAgain,
  };
}

function newestOf(numbers: ChartedNumbers | null): number {
  let newest = 0;
  for (const { times } of numbers?.topics.values() ?? [])
    newest = Math.max(newest, (times.at(-1) ?? 0) * 1_000);
  return newest;
}

function timeOf(iso: string): number | null {
  const time = Date.parse(iso);
  return Number.isNaN(time) ? null : time;
}
