import { useMutation } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { forEachDevice, type Outcome } from "./for-each-device.ts";

/** Requests at a time over HTTP/1.1: a browser has six connections to one server, and streams and views need some. */
const concurrency = 4;

/** Requests at a time where they share one connection. */
const multiplexedConcurrency = 16;

/** Interval at which outcomes are shown, in milliseconds. */
const gatherMs = 100;

/** What is done to each device. */
export interface DeviceWork {
  readonly act: (id: string, signal: AbortSignal) => Promise<unknown>;
  /** Called when the work has finished or is cancelled. */
  readonly onEnd?: (outcomes: readonly Outcome[]) => void;
}

/** The progress of work on many devices. */
interface WorkProgress {
  readonly state: "idle" | "running" | "finished" | "cancelled";
  readonly outcomes: readonly Outcome[];
  readonly start: (ids: readonly string[]) => void;
  readonly cancel: () => void;
}

/** Does work on many devices; unmounting the component cancels it. */
export function useDeviceWork({ act, onEnd }: DeviceWork): WorkProgress {
  const [outcomes, setOutcomes] = useState<readonly Outcome[]>([]);
  const running = useRef<AbortController | null>(null);
  useEffect(() => () => running.current?.abort(), []);
  const work = useMutation({
    mutationFn: async (ids: readonly string[]) => {
      const ending = new AbortController();
      running.current = ending;
      const gathered: Outcome[] = [];
      const show = () => setOutcomes([...gathered]);
      const showing = setInterval(show, gatherMs);
      await forEachDevice({
        ids,
        concurrency: isMultiplexed() ? multiplexedConcurrency : concurrency,
        act,
        onOutcome: (outcome) => gathered.push(outcome),
        signal: ending.signal,
      }).finally(() => clearInterval(showing));
      show();
      onEnd?.(gathered);
      return ending.signal.aborted ? "cancelled" : "finished";
    },
  });
  return {
    state: work.data ?? (work.isPending ? "running" : "idle"),
    outcomes,
    start: work.mutate,
    cancel: () => running.current?.abort(),
  };
}

function isMultiplexed(): boolean {
  return performance
    .getEntriesByType("navigation")
    .some((entry) => ["h2", "h3"].includes((entry as PerformanceNavigationTiming).nextHopProtocol));
}
