import { useLocation } from "wouter";
import { ApiProblem } from "../../../api/api-problem.ts";
import { type BackgroundWork, useBackgroundWork } from "../../../components/background-work.ts";
import { countText } from "../../../components/number-text.ts";
import { remainingMs, remainingText } from "../../../components/progress-text.ts";
import { useWantedSelection } from "../shared/wanted-selection.ts";
import { type DeviceOutcome, forEachDevice } from "./for-each-device.ts";

/** Requests at a time over HTTP/1.1: a browser has six connections to one server, and streams and views need some. */
const concurrency = 4;

/** Requests at a time where they share one connection. */
const multiplexedConcurrency = 16;

/** Interval at which outcomes are shown, in milliseconds. */
const gatherMs = 100;

/** What is done to each device. */
export interface DeviceJob {
  /** Heading of its progress, such as "Delete 3 devices". */
  readonly name: string;
  readonly ids: readonly string[];
  /** Participle of the job, as in "3 of 5 deleted". */
  readonly done: string;
  readonly act: (id: string, signal: AbortSignal) => Promise<unknown>;
  /** Called when the job has finished or is cancelled. */
  readonly onEnd?: (outcomes: readonly DeviceOutcome[]) => void;
}

/** The end of what was started last: jobs run one after the other, as they share the browser's connections. */
let lastEnd: Promise<void> = Promise.resolve();

/** Returns a function that starts a job of this page: what no job of the server does, such as a deletion. */
export function useStartJob(): (job: DeviceJob) => void {
  const [, update] = useBackgroundWork();
  const [, setWanted] = useWantedSelection();
  const [, navigate] = useLocation();
  const start = (job: DeviceJob) => {
    const { name, ids, done, act, onEnd } = job;
    const key = `devices ${performance.now()}`;
    const ending = new AbortController();
    const gathered: DeviceOutcome[] = [];
    const cancel = () => ending.abort();
    const waiting = { key, title: name, state: "running", share: 0, cancel } as const;
    update((works) => [...works, { ...waiting, text: "Waits for the work before it" }]);
    const run = async () => {
      const begun = performance.now();
      const show = (changes: Partial<BackgroundWork> = {}) => {
        const share = gathered.length / ids.length;
        const failures = gathered.flatMap((outcome) =>
          outcome.kind === "failed" ? [{ name: outcome.id, text: textOf(outcome.error) }] : [],
        );
        const parts = [
          `${countText(gathered.length - failures.length)} of ${countText(ids.length)} ${done}`,
          ...(failures.length > 0 ? [`${countText(failures.length)} failed`] : []),
        ];
        const isRunning = changes.state === undefined;
        const end = isRunning ? remainingText(remainingMs(performance.now() - begun, share)) : "";
        const left = `Cancelled; ${countText(ids.length - gathered.length)} were left as they are`;
        const counts = [...parts, ...(end === "" ? [] : [end])].join(", ");
        const text = changes.state === "cancelled" ? `${counts}. ${left}` : counts;
        update((works) =>
          works.map((work) => (work.key === key ? { ...work, share, failures, text, ...changes } : work)),
        );
      };
      show();
      const showing = setInterval(() => show(), gatherMs);
      const options = { ids, act, onOutcome: (outcome: DeviceOutcome) => gathered.push(outcome) };
      await forEachDevice({
        ...options,
        concurrency: isMultiplexed() ? multiplexedConcurrency : concurrency,
        signal: ending.signal,
      }).finally(() => clearInterval(showing));
      const failed = gathered.filter(({ kind }) => kind === "failed").map(({ id }) => id);
      const select = () => {
        setWanted(() => new Set(failed));
        navigate("/devices");
      };
      show({
        state: ending.signal.aborted ? "cancelled" : "done",
        ...(failed.length > 0 && {
          next: [
            { label: "Retry the failed", run: () => start({ ...job, ids: failed }) },
            { label: "Select the failed", run: select },
          ],
        }),
      });
      onEnd?.(gathered);
    };
    lastEnd = lastEnd.then(run);
  };
  return start;
}

function textOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return error instanceof ApiProblem ? `${message} (${error.reason})` : message;
}

function isMultiplexed(): boolean {
  return performance
    .getEntriesByType("navigation")
    .some((entry) => ["h2", "h3"].includes((entry as PerformanceNavigationTiming).nextHopProtocol));
}
