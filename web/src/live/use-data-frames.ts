import type { Notification } from "@devmesh/contracts/model/notification";
import { useEffect, useEffectEvent, useState } from "react";
import { useApi } from "../api/api-context.tsx";
import type { StreamState } from "./lasting-stream.ts";
import { followNotifications, gatherFrames } from "./notification-stream.ts";
import { pageVisibility } from "./page-visibility.ts";

/** Options of {@link useDataFrames}. */
interface DataFrameOptions {
  /** Id of the only device; empty for all. */
  readonly device: string;
  readonly enabled: boolean;
  /** Begins with the frames of the last hour, but for records. */
  readonly history?: boolean | undefined;
  /** Called with batches of all frames, `data` included. */
  readonly onFrames: (frames: readonly Notification[]) => void;
  /** Records may be missing: `GET /data?after=` has them. */
  readonly onMissed?: () => void;
}

/**
 * Follows a separate stream with the records that devices publish: only views that show records pay for them. Returns
 * its state.
 */
export function useDataFrames({
  device,
  enabled,
  history,
  onFrames,
  onMissed,
}: DataFrameOptions): StreamState {
  const api = useApi();
  const [state, setState] = useState<StreamState>("connecting");
  const deliver = useEffectEvent(onFrames);
  const miss = useEffectEvent(() => onMissed?.());
  useEffect(() => {
    if (!enabled) return;
    const ending = new AbortController();
    void followNotifications({
      api,
      device,
      data: true,
      ...(history && { after: 0 }),
      onFrame: gatherFrames((frames) => deliver(frames), ending.signal),
      onState(changed) {
        setState(changed);
        // Records may be stored while there is no connection.
        if (changed === "live") miss();
      },
      onGap: () => miss(),
      visibility: pageVisibility(),
      signal: ending.signal,
    });
    return () => ending.abort();
  }, [api, device, enabled, history]);
  return state;
}
