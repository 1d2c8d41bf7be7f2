import type { Notification } from "@devmesh/contracts/model/notification";
import { useEffect } from "react";
import { useApi } from "../api/api-context.tsx";
import { gatherFrames } from "./frame-batches.ts";
import type { StreamState } from "./lasting-stream.ts";
import { followNotifications } from "./notification-stream.ts";
import { pageSight } from "./page-sight.ts";

/** Which records a view follows, and what it does with them. */
export interface DataFrameHandlers {
  /** Id of the one device whose frames are wanted, so that no others are sent; empty for all. */
  readonly device: string;
  /** All frames, `data` among them, some at a time. */
  readonly onFrames: (frames: readonly Notification[]) => void;
  /** Records may have been missed: `GET /data?after=` has them. */
  readonly onGap: () => void;
  readonly onState: (state: StreamState) => void;
}

/**
 * Follows a stream of its own with the records that devices publish, while `enabled`: they can be many, so only a view
 * that shows them asks for them. Keep the identity of `handlers` with `useMemo`.
 */
export function useDataFrames(handlers: DataFrameHandlers, enabled = true): void {
  const api = useApi();
  useEffect(() => {
    if (!enabled) return;
    const ending = new AbortController();
    const batches = gatherFrames(handlers.onFrames);
    void followNotifications({
      api,
      device: handlers.device,
      data: true,
      onFrame: batches.push,
      onState: handlers.onState,
      onGap: handlers.onGap,
      sight: pageSight(),
      signal: ending.signal,
    });
    return () => {
      ending.abort();
      batches.stop();
    };
  }, [api, handlers, enabled]);
}
