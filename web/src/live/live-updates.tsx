import type { Notification } from "@devmesh/contracts/model/notification";
import { useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useMemo, useState } from "react";
import { useApi } from "../api/api-context.tsx";
import { applyFrames, readDevices } from "./apply-frames.ts";
import { gatherFrames } from "./frame-batches.ts";
import { applyAroundReads } from "./frames-and-reads.ts";
import type { StreamState } from "./lasting-stream.ts";
import { followNotifications } from "./notification-stream.ts";
import { pageSight } from "./page-sight.ts";

type FrameListener = (frames: readonly Notification[]) => void;

interface LiveUpdatesValue {
  readonly state: StreamState;
  /** Adds a listener; answers what removes it. */
  readonly listen: (listener: FrameListener) => () => void;
}

const LiveUpdatesContext = createContext<LiveUpdatesValue | null>(null);

/** Follows the notification stream for all views below: what it tells goes into the query cache and to listeners. */
export function LiveUpdates({ children }: { readonly children: ReactNode }) {
  const api = useApi();
  const queries = useQueryClient();
  const [state, setState] = useState<StreamState>("connecting");
  const [listeners] = useState(() => new Set<FrameListener>());

  useEffect(() => {
    const ending = new AbortController();
    const cache = applyAroundReads(queries, (frames) => {
      const unknown = applyFrames(queries, frames);
      if (unknown.size > 0) void readDevices(api, queries, unknown, ending.signal);
    });
    const batches = gatherFrames((frames) => {
      cache.take(frames);
      for (const listener of listeners) listener(frames);
    });
    void followNotifications({
      api,
      account: true,
      onFrame: batches.push,
      onState: setState,
      // What was read before the stream began, in a page that was opened in the background long before.
      onBegin: () => void queries.invalidateQueries(),
      onGap: () => void queries.invalidateQueries(),
      sight: pageSight(),
      signal: ending.signal,
    });
    return () => {
      ending.abort();
      batches.stop();
      cache.stop();
    };
  }, [api, queries, listeners]);

  const value = useMemo(
    () => ({
      state,
      listen: (listener: FrameListener) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
    }),
    [state, listeners],
  );
  return <LiveUpdatesContext value={value}>{children}</LiveUpdatesContext>;
}

/** How the stream stands that keeps the views up to date. */
export function useStreamState(): StreamState {
  return useLiveUpdates().state;
}

/** Calls `listener` with the frames that come while the component is there, some at a time. Keep its identity with `useCallback`. */
export function useFrames(listener: FrameListener): void {
  const { listen } = useLiveUpdates();
  useEffect(() => listen(listener), [listen, listener]);
}

function useLiveUpdates(): LiveUpdatesValue {
  const value = useContext(LiveUpdatesContext);
  if (value === null) throw new Error("there are no live updates outside of <LiveUpdates>");
  return value;
}
