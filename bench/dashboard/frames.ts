import type { Browser, Page } from "playwright-core";

/** Frame times of a page during an action, in milliseconds. */
export interface FrameTimes {
  /** The longest frame, from callback to callback or as the browser reports long ones. */
  readonly longestFrameMs: number;
  /** Processor time of the main thread's longest task: the frame time on an idle machine. */
  readonly busiestTaskMs: number;
}

/** Records the longest frame of a page until the result is called. */
async function recordFrames(page: Page): Promise<() => Promise<number>> {
  await page.evaluate(() => {
    let longest = 0;
    let before = performance.now();
    let asked = false;
    const frame = () => {
      const now = performance.now();
      longest = Math.max(longest, now - before);
      before = now;
      if (!asked) requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
    const observer = new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) longest = Math.max(longest, duration);
    });
    for (const type of ["long-animation-frame", "longtask"]) observer.observe({ type });
    Object.assign(window, {
      longestFrame: () => {
        asked = true;
        observer.disconnect();
        return longest;
      },
    });
  });
  return () => page.evaluate(() => (window as unknown as { longestFrame(): number }).longestFrame());
}

/** Measures the frames of a page during an action. */
export async function frameTimesOf(
  browser: Browser,
  page: Page,
  act: () => Promise<void>,
): Promise<FrameTimes> {
  const longest = await recordFrames(page);
  await browser.startTracing(page, { categories: ["toplevel"] });
  await act();
  const trace = await browser.stopTracing();
  return { longestFrameMs: await longest(), busiestTaskMs: busiestTask(trace) };
}

/** A task in Chromium's trace; times in microseconds. */
interface TraceEvent {
  readonly name: string;
  readonly pid: number;
  readonly tid: number;
  readonly tdur?: number;
  readonly args?: { readonly name?: string };
}

/** Processor time of the longest task on a page's main thread, in milliseconds. */
function busiestTask(trace: Buffer): number {
  const { traceEvents } = JSON.parse(trace.toString("utf8")) as { traceEvents: TraceEvent[] };
  const threadOf = ({ pid, tid }: TraceEvent) => `${pid} ${tid}`;
  const mainThreads = new Set(
    traceEvents
      .filter(({ name, args }) => name === "thread_name" && args?.name === "CrRendererMain")
      .map(threadOf),
  );
  const times = traceEvents
    .filter((event) => event.name === "ThreadControllerImpl::RunTask" && mainThreads.has(threadOf(event)))
    .map(({ tdur = 0 }) => tdur / 1_000);
  if (times.length === 0) throw new Error("the browser's trace has no task");
  return times.reduce((most, time) => Math.max(most, time), 0);
}
