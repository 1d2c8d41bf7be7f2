import type { Page } from "playwright-core";

/**
 * Records the frames of a page from now on. Answers the longest one since the last answer, in milliseconds: from one frame's
 * callbacks to the next one's, or as the browser tells of a long one, whichever is longer.
 */
export async function recordFrames(page: Page): Promise<() => Promise<number>> {
  await page.evaluate(() => {
    let longest = 0;
    let before = performance.now();
    const frame = () => {
      const now = performance.now();
      longest = Math.max(longest, now - before);
      before = now;
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
    const observer = new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) longest = Math.max(longest, duration);
    });
    for (const type of ["long-animation-frame", "longtask"]) observer.observe({ type });
    Object.assign(window, {
      longestFrame: () => {
        const told = longest;
        longest = 0;
        return told;
      },
    });
  });
  return () => page.evaluate(() => (window as unknown as { longestFrame(): number }).longestFrame());
}
