import { useCallback, useEffect, useRef, useState } from "react";
import { forEachDevice, type Outcome } from "./for-each-device.ts";

/**
 * Devices that are worked on at a time. Over HTTP/1.1 a browser has six connections to one server: some are left to the streams
 * and to what else the page asks.
 */
const concurrency = 4;

/** The same where requests share one connection. */
const multiplexedConcurrency = 16;

/** How long outcomes are gathered before they are shown, in milliseconds. */
const gatherMs = 100;

/** Work on many devices, as far as it has come. */
export interface DeviceWork {
  readonly state: "idle" | "running" | "finished" | "cancelled";
  /** Devices to be worked on. */
  readonly total: number;
  readonly outcomes: readonly Outcome[];
  readonly start: (
    ids: readonly string[],
    act: (id: string, signal: AbortSignal) => Promise<unknown>,
  ) => void;
  readonly cancel: () => void;
}

/** Works on many devices and tells how far it has come; it is cancelled when the component goes. */
export function useDeviceWork(): DeviceWork {
  const [state, setState] = useState<DeviceWork["state"]>("idle");
  const [total, setTotal] = useState(0);
  const [outcomes, setOutcomes] = useState<readonly Outcome[]>([]);
  const running = useRef<AbortController | null>(null);
  useEffect(() => () => running.current?.abort(), []);

  const start = useCallback<DeviceWork["start"]>((ids, act) => {
    const ending = new AbortController();
    running.current = ending;
    const gathered: Outcome[] = [];
    const show = () => setOutcomes([...gathered]);
    const showing = setInterval(show, gatherMs);
    setState("running");
    setTotal(ids.length);
    setOutcomes([]);
    const onOutcome = (outcome: Outcome) => gathered.push(outcome);
    const atATime = isMultiplexed() ? multiplexedConcurrency : concurrency;
    const { signal } = ending;
    void forEachDevice({ ids, concurrency: atATime, act, onOutcome, signal }).finally(() => {
      clearInterval(showing);
      show();
      setState(signal.aborted ? "cancelled" : "finished");
    });
  }, []);
  const cancel = useCallback(() => running.current?.abort(), []);
  return { state, total, outcomes, start, cancel };
}

function isMultiplexed(): boolean {
  return performance
    .getEntriesByType("navigation")
    .some((entry) => ["h2", "h3"].includes((entry as PerformanceNavigationTiming).nextHopProtocol));
}
