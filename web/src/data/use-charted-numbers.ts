import type { Notification } from "@devmesh/contracts/model/notification";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { useApi } from "../api/api-context.tsx";
import type { StreamState } from "../live/lasting-stream.ts";
import { useDataFrames } from "../live/use-data-frames.ts";
import { type ChartedNumbers, chartRecords, type RecordChart } from "./charted-records.ts";
import { recordsIn } from "./record-frames.ts";
import type { RecordSelection } from "./record-selection.ts";

/** How often a range that ends now moves on, in milliseconds. */
const moveMs = 2_000;

/** Which numbers are charted. */
export interface ChartedRange {
  /** Keep its identity with `useMemo`. */
  readonly selection: RecordSelection;
  /** The range is the time before now, in milliseconds, and moves on; null: it is that of the selection. */
  readonly lastMs: number | null;
  /** Most records that are read: the newest ones. */
  readonly mostRecords: number;
  /** Records that are stored meanwhile are taken up. */
  readonly live: boolean;
}

/** Numbers as far as they are read, and how it stands with reading them. */
export interface UsedNumbers {
  /** Null before the first are there. */
  readonly numbers: ChartedNumbers | null;
  /** Unix ms; null where the range is open. */
  readonly from: number | null;
  readonly to: number | null;
  readonly isReading: boolean;
  readonly error: unknown;
  readonly stream: StreamState;
  readonly readAgain: () => void;
}

/** The numbers of a range: read backwards from the newest, then followed live. */
export function useChartedNumbers({ selection, lastMs, mostRecords, live }: ChartedRange): UsedNumbers {
  const api = useApi();
  const [numbers, setNumbers] = useState<ChartedNumbers | null>(null);
  const [isReading, setReading] = useState(true);
  const [error, setError] = useState<unknown>(null);
  const [stream, setStream] = useState<StreamState>("connecting");
  const [attempt, setAttempt] = useState(0);
  const [now, setNow] = useState(Date.now);
  const current = useRef<{ readonly chart: RecordChart; readonly signal: AbortSignal } | null>(null);
  const readAgain = useCallback(() => setAttempt((before) => before + 1), []);

  const catchUp = useCallback(async () => {
    if (current.current === null) return;
    const { chart, signal } = current.current;
    try {
      if (await chart.catchUp(signal)) setError(null);
      else readAgain();
    } catch (failure) {
      if (!signal.aborted) setError(failure);
    }
  }, [readAgain]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: another attempt begins anew
  useEffect(() => {
    const ending = new AbortController();
    const { signal } = ending;
    const begun = Date.now();
    const since = lastMs === null ? selection.since : new Date(begun - lastMs).toISOString();
    const chart = chartRecords({
      api,
      selection: { ...selection, since },
      mostRecords,
      onChange: (changed) => !signal.aborted && setNumbers(changed),
    });
    current.current = { chart, signal };
    setNow(begun);
    setNumbers(null);
    setError(null);
    setReading(true);
    chart
      .read(signal)
      // What was stored while the first page was on its way.
      .then(catchUp)
      .catch((failure: unknown) => !signal.aborted && setError(failure))
      .finally(() => !signal.aborted && setReading(false));
    return () => ending.abort();
  }, [api, selection, lastMs, mostRecords, catchUp, attempt]);

  const { device } = selection;
  const handlers = useMemo(
    () => ({
      device,
      onFrames: (frames: readonly Notification[]) => current.current?.chart.take(recordsIn(frames)),
      onGap: () => void catchUp(),
      onState: (state: StreamState) => {
        setStream(state);
        // What was stored while the stream was away or paused.
        if (state === "live") void catchUp();
      },
    }),
    [device, catchUp],
  );
  useDataFrames(handlers, live);

  useEffect(() => {
    if (lastMs === null || !live) return;
    const timer = setInterval(() => {
      setNow(Date.now());
      current.current?.chart.dropBefore(Date.now() - lastMs);
    }, moveMs);
    return () => clearInterval(timer);
  }, [lastMs, live]);

  const newest = useMemo(() => newestOf(numbers), [numbers]);
  // The server's clock may be ahead.
  const to = lastMs === null ? timeOf(selection.until) : Math.max(now, newest);
  const from = lastMs === null || to === null ? timeOf(selection.since) : to - lastMs;
  return { numbers, from, to, isReading, error, stream, readAgain };
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
