import { type Query, type QueryCache, useQueryClient } from "@tanstack/react-query";
import { useCallback, useSyncExternalStore } from "react";
import { queryKeys } from "../../api/query-keys.ts";
import { useServerTime } from "../../components/relative-time.tsx";
import { StateBadge } from "../../components/state.tsx";
import { clockText, dayTimeText, shortTimeText } from "../../components/time-in-words.ts";
import styles from "./wall-state.module.css";

/** Reads that keep a board current: its numbers, and the board. */
const shownKeys: ReadonlySet<unknown> = new Set([queryKeys.series[0], queryKeys.board("")[0]]);

/** The time of the server, and whether what a wall shows is current: nobody there presses a key to find out. */
export function WallState() {
  const now = useServerTime();
  const since = useStaleSince();
  return (
    <span className={styles.wall}>
      <span role="status">
        {since === null ? (
          <StateBadge look="good">Live</StateBadge>
        ) : (
          <StateBadge look="bad">
            {since === 0 ? "Not live" : `Not live since ${shortTimeText(since, now)}`}
          </StateBadge>
        )}
      </span>
      <time className={styles.clock} title={clockText(now)}>
        {dayTimeText(now)}
      </time>
    </span>
  );
}

/** When the oldest of the shown numbers that fail now were read, Unix ms; 0 for never, null while none fail. */
function useStaleSince(): number | null {
  const cache = useQueryClient().getQueryCache();
  const subscribe = useCallback((listener: () => void) => cache.subscribe(listener), [cache]);
  return useSyncExternalStore(subscribe, () => staleSince(cache));
}

function staleSince(cache: QueryCache): number | null {
  const times = cache
    .findAll({ type: "active", predicate: isFailing })
    .map(({ state }) => state.dataUpdatedAt);
  return times.length === 0 ? null : Math.min(...times);
}

/** A first failure is repeated at once, and may be a restart. */
function isFailing({ queryKey, state }: Query): boolean {
  return shownKeys.has(queryKey[0]) && (state.status === "error" || state.fetchFailureCount > 1);
}
