import type { Notification } from "@devmesh/contracts/model/notification";
import { createSafeContext } from "@mantine/core";
import { type Query, type QueryClient, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useEffect, useEffectEvent, useState } from "react";
import type { ApiClient } from "../api/api-client.ts";
import { useApi } from "../api/api-context.tsx";
import { queryKeys } from "../api/query-keys.ts";
import { applyAroundReads } from "./frames-and-reads.ts";
import type { StreamState } from "./lasting-stream.ts";
import { followNotifications, gatherFrames } from "./notification-stream.ts";
import { pageVisibility } from "./page-visibility.ts";
import { useStreamed } from "./use-streamed.ts";

type FrameListener = (frames: readonly Notification[]) => void;

const [FrameListeners, useFrameListeners] =
  createSafeContext<Set<FrameListener>>("frames need <LiveUpdates>");

/** Time after which a lost stream counts as an outage, in milliseconds: a restart of the gateway is shorter. */
const toleratedMs = 3_000;

interface LiveUpdatesProps {
  /** Writes frames into the query cache. A stable function. */
  readonly apply: (
    api: ApiClient,
    queries: QueryClient,
    frames: readonly Notification[],
    signal: AbortSignal,
  ) => void;
  readonly children: ReactNode;
}

/** Follows the notification stream for all views: its frames go into the query cache and to listeners. */
export function LiveUpdates({ apply, children }: LiveUpdatesProps) {
  const api = useApi();
  const queries = useQueryClient();
  const [listeners] = useState(() => new Set<FrameListener>());
  const [state, setState] = useStreamed<StreamState>(queryKeys.stream, "connecting");
  const [, setOutage] = useStreamed<number | null>(queryKeys.outage, null);
  const isLost = state === "reconnecting" || state === "unavailable";

  useEffect(() => {
    const ending = new AbortController();
    const cache = applyAroundReads(queries, (frames) => apply(api, queries, frames, ending.signal));
    const deliver: FrameListener = (frames) => {
      cache.take(frames);
      for (const listener of listeners) listener(frames);
    };
    void followNotifications({
      api,
      account: true,
      onFrame: gatherFrames(deliver, ending.signal),
      onState(changed) {
        setState(() => changed);
        if (changed === "live") void queries.refetchQueries({ type: "active", predicate: hasFailed });
      },
      // A page in the background may have read its data long before the stream starts.
      onBegin: () => void queries.invalidateQueries(),
      onGap: () => void queries.invalidateQueries(),
      visibility: pageVisibility(),
      signal: ending.signal,
    });
    return () => {
      ending.abort();
      cache.stop();
    };
  }, [api, queries, listeners, apply, setState]);

  useEffect(() => {
    if (!isLost) return;
    const since = Date.now();
    const timer = setTimeout(() => setOutage(() => since), toleratedMs);
    return () => {
      clearTimeout(timer);
      setOutage(() => null);
    };
  }, [isLost, setOutage]);
  return <FrameListeners value={listeners}>{children}</FrameListeners>;
}

/** State of the notification stream. */
export function useStreamState(): StreamState {
  return useStreamed<StreamState>(queryKeys.stream, "connecting")[0];
}

/** Since when the page has had no live updates, Unix ms: presence may have changed since. Null while they come. */
export function useOutage(): number | null {
  return useStreamed<number | null>(queryKeys.outage, null)[0];
}

/** Calls `listener` with batches of frames while the component is mounted. */
export function useFrames(listener: FrameListener): void {
  const listeners = useFrameListeners();
  const deliver = useEffectEvent(listener);
  useEffect(() => {
    const each: FrameListener = (frames) => deliver(frames);
    listeners.add(each);
    return () => void listeners.delete(each);
  }, [listeners]);
}

function hasFailed({ state }: Query): boolean {
  return state.status === "error";
}
