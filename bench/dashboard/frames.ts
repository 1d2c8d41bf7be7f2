import type { Browser, Page } from "playwright-core";

/** What the frames of a page took while something was done on it, in milliseconds. */
export interface FrameTimes {
  /** From the callbacks of one frame to those of the next, or as the browser tells of a long one; the longest. */
  readonly longestFrameMs: number;
  /**
   * Of the processor, of the page's main thread in its longest task: what the frame would take on a machine that does
   * nothing else.
   */
  readonly busiestTaskMs: number;
}

/** Starts to record the longest frame of a page, until it is asked for. */
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

/** Does something on a page and measures the frames meanwhile. */
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

/** What Chromium's trace says of a task, as far as it is needed; times in microseconds. */
interface TraceEvent {
  readonly name: string;
  readonly pid: number;
  readonly tid: number;
  readonly tdur?: number;
  readonly args?: { readonly name?: string };
}

/** The most processor time that a task took on the main thread of a page, in milliseconds. */
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
  if (times.length === 0) throw new Error("the browser's trace tells of no task");
  return times.reduce((most, time) => Math.max(most, time), 0);
}
