import { once } from "node:events";

/** A Ctrl-C can arrive twice, from the terminal and from npm: a second one within this time, in ms, is ignored. */
const SAME_REQUEST_MS = 500;

/**
 * The first request to stop this process, as a signal and as a promise: SIGINT, SIGTERM, SIGHUP or the end of the
 * channel to the parent. A second signal calls `onSecond`, which ends the process by default.
 */
export function stopRequest(onSecond: () => void = endInterrupted) {
  const abort = new AbortController();
  let first: number | null = null;
  const request = () => {
    if (first !== null && performance.now() - first >= SAME_REQUEST_MS) return onSecond();
    first ??= performance.now();
    abort.abort();
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, request);
  if (process.connected) process.once("disconnect", () => abort.abort());
  return { signal: abort.signal, requested: once(abort.signal, "abort") };
}

/** With a shell's exit code for SIGINT. */
function endInterrupted(): void {
  process.exit(130);
}
