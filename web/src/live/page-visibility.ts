/** Visibility of the page, for streams that a hidden page does not need. */
export interface Visibility {
  /** Resolves when the page is visible, or when `signal` fires. */
  readonly visible: (signal: AbortSignal) => Promise<void>;
  /** A signal that fires when the page has been hidden for a while; it is watched until `signal` fires. */
  readonly hidden: (signal: AbortSignal) => AbortSignal;
}

/** Time for which a hidden page keeps its streams, in milliseconds: a short look elsewhere costs no reconnect. */
const lingerMs = 10_000;

type VisiblePage = Pick<Document, "visibilityState" | "addEventListener" | "removeEventListener">;

/**
 * Visibility of the page. Over HTTP/1.1 a browser has six connections to one server for all of its tabs: hidden pages
 * must not hold them.
 */
export function pageVisibility(page: VisiblePage = document, linger: number = lingerMs): Visibility {
  const isHidden = () => page.visibilityState === "hidden";
  return {
    visible: (signal) =>
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
    hidden(signal) {
      const ending = new AbortController();
      let timer: ReturnType<typeof setTimeout> | undefined;
      const check = () => {
        clearTimeout(timer);
        if (isHidden()) timer = setTimeout(() => ending.abort(new Error("the page is hidden")), linger);
      };
      const end = () => {
        clearTimeout(timer);
        page.removeEventListener("visibilitychange", check);
      };
      page.addEventListener("visibilitychange", check);
      signal.addEventListener("abort", end, { once: true });
      check();
      return ending.signal;
    },
  };
}
