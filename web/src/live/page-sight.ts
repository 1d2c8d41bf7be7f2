/** Whether somebody may be looking at what a stream tells. */
export interface Sight {
  /** Resolves as soon as the page is in sight, or when `signal` fires. */
  readonly seen: (signal: AbortSignal) => Promise<void>;
  /** What fires once the page has been out of sight for a while; it is watched until `signal` fires. */
  readonly lost: (signal: AbortSignal) => AbortSignal;
}

/** How long a page out of sight keeps its streams, in milliseconds: who only glances elsewhere finds them as they were. */
const lingerMs = 10_000;

type VisiblePage = Pick<Document, "visibilityState" | "addEventListener" | "removeEventListener">;

/**
 * Sight of the page. A browser has six connections to one server over HTTP/1.1 for all of its tabs: pages in the background must
 * not hold them, nor take one before they were first looked at.
 */
export function pageSight(page: VisiblePage = document, linger: number = lingerMs): Sight {
  const isHidden = () => page.visibilityState === "hidden";
  return {
    seen: (signal) =>
      new Promise((resolve) => {
        const check = () => {
          if (isHidden() && !signal.aborted) return;
          page.removeEventListener("visibilitychange", check);
          signal.removeEventListener("abort", check);
          resolve();
        };
        page.addEventListener("visibilitychange", check);
        signal.addEventListener("abort", check);
        check();
      }),
    lost(signal) {
      const losing = new AbortController();
      let timer: ReturnType<typeof setTimeout> | undefined;
      const check = () => {
        clearTimeout(timer);
        if (isHidden()) timer = setTimeout(() => losing.abort(new Error("the page is out of sight")), linger);
      };
      const end = () => {
        clearTimeout(timer);
        page.removeEventListener("visibilitychange", check);
      };
      page.addEventListener("visibilitychange", check);
      signal.addEventListener("abort", end, { once: true });
      check();
      return losing.signal;
    },
  };
}
