/**
 * One Ctrl-C can arrive twice, from the terminal and from npm; what follows within this time, in milliseconds, is the
 * same one.
 */
const SAME_REQUEST_MS = 500;

/** The user's wish that this process stops. */
export interface StopRequest {
  /** Fires with the first request. */
  readonly signal: AbortSignal;
  /** Resolves with the first request. */
  readonly requested: Promise<void>;
}

/**
 * Listens to SIGINT, SIGTERM, SIGHUP and, when there is one, to the end of the channel to the parent. A second request,
 * half a second or more after the first, calls `onSecond`; without one it ends the process.
 */
export function stopRequest(onSecond: () => void = endInterrupted): StopRequest {
  const abort = new AbortController();
  let first: number | null = null;
  const request = () => {
    if (first !== null && performance.now() - first >= SAME_REQUEST_MS) return onSecond();
    first ??= performance.now();
    abort.abort();
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, request);
  if (process.connected) process.once("disconnect", () => abort.abort());
  const requested = new Promise<void>((resolve) => {
    abort.signal.addEventListener("abort", () => resolve(), { once: true });
  });
  return { signal: abort.signal, requested };
}

/** Ends this process as a shell names one that SIGINT ended. */
function endInterrupted(): void {
  process.exit(130);
}
