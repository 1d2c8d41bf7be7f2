import { useQueryClient } from "@tanstack/react-query";
import { queryKeys } from "../../../api/query-keys.ts";
import { type DeviceJob, type DeviceWork, noWork } from "./device-work.ts";
import { type DeviceOutcome, forEachDevice } from "./for-each-device.ts";

/** Requests at a time over HTTP/1.1: a browser has six connections to one server, and streams and views need some. */
const concurrency = 4;

/** Requests at a time where they share one connection. */
const multiplexedConcurrency = 16;

/** Interval at which outcomes are shown, in milliseconds. */
const gatherMs = 100;

/** The end of what was started last: jobs run one after the other, as they share the browser's connections. */
let lastEnd: Promise<void> = Promise.resolve();

/** Returns a function that starts a job. */
export function useStartJob(): (job: DeviceJob) => void {
  const queries = useQueryClient();
  return (job) => {
    const { name, ids, done, act, onEnd } = job;
    const key = crypto.randomUUID();
    const ending = new AbortController();
    const gathered: DeviceOutcome[] = [];
    const update = (change: (works: readonly DeviceWork[]) => readonly DeviceWork[]) =>
      queries.setQueryData<readonly DeviceWork[]>(queryKeys.deviceWork, (before) => change(before ?? noWork));
    const show = (state: DeviceWork["state"]) =>
      update((works) =>
        works.map((work) => (work.key === key ? { ...work, state, outcomes: [...gathered] } : work)),
      );
    const cancel = () => ending.abort();
    update((works) => [...works, { key, job, name, ids, done, state: "waiting", outcomes: [], cancel }]);
    const run = async () => {
      show("running");
      const showing = setInterval(() => show("running"), gatherMs);
      await forEachDevice({
        ids,
        concurrency: isMultiplexed() ? multiplexedConcurrency : concurrency,
        act,
        onOutcome: (outcome) => gathered.push(outcome),
        signal: ending.signal,
      }).finally(() => clearInterval(showing));
      show(ending.signal.aborted ? "cancelled" : "finished");
      onEnd?.(gathered);
    };
    lastEnd = lastEnd.then(run);
  };
}

function isMultiplexed(): boolean {
  return performance
    .getEntriesByType("navigation")
    .some((entry) => ["h2", "h3"].includes((entry as PerformanceNavigationTiming).nextHopProtocol));
}
