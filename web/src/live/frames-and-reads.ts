import type { Notification } from "@devmesh/contracts/model/notification";
import type { QueryClient } from "@tanstack/react-query";
import { queryKeys } from "../api/query-keys.ts";

/** Maximum of frames that are kept during reads; after more of them, the data is read again. */
const mostKept = 10_000;

const followed: ReadonlySet<unknown> = new Set([
  queryKeys.deviceLists[0],
  queryKeys.device("")[0],
  queryKeys.keys[0],
  queryKeys.customers[0],
  queryKeys.job("")[0],
  queryKeys.jobs[0],
  queryKeys.alert("")[0],
]);

/**
 * Applies frames to what is cached, and those that came during a read once more when it has ended: what it brings may
 * be older than they are. A list that is read page by page is the usual case, as each page brings the ones before it
 * along as they were.
 */
export function applyAroundReads(
  queries: QueryClient,
  apply: (frames: readonly Notification[]) => void,
): {
  readonly take: (frames: readonly Notification[]) => void;
  /** Stops the observation of reads. */
  readonly stop: () => void;
} {
  /** Number of frames so far; the last ones are kept. */
  let taken = 0;
  let kept: readonly Notification[] = [];
  /** Reads that are under way, with how many frames had been taken when each began. */
  const begun = new Map<string, number>();

  const stop = queries.getQueryCache().subscribe((event) => {
    if (event.type !== "updated" || !followed.has(event.query.queryKey[0])) return;
    const { action, query } = event;
    if (action.type === "fetch") begun.set(query.queryHash, taken);
    if (query.state.fetchStatus !== "idle") return;
    const since = begun.get(query.queryHash);
    begun.delete(query.queryHash);
    const late = since === undefined ? 0 : taken - since;
    const frames = kept;
    if (begun.size === 0) kept = [];
    if (action.type !== "success" || late === 0) return;
    if (late > frames.length) void queries.invalidateQueries({ queryKey: query.queryKey, exact: true });
    else apply(frames.slice(-late));
  });
  return {
    take(frames) {
      apply(frames);
      taken += frames.length;
      if (begun.size > 0) kept = [...kept, ...frames].slice(-mostKept);
    },
    stop,
  };
}
