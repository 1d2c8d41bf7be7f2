import { useEffect, useEffectEvent, useRef } from "react";
import { useApi } from "../../../api/api-context.tsx";
import { queryKeys } from "../../../api/query-keys.ts";
import { followNotifications, gatherFrames } from "../../../live/notification-stream.ts";
import { pageVisibility } from "../../../live/page-visibility.ts";
import { useStreamed } from "../../../live/use-streamed.ts";
import { type EventLog, emptyLog, withFrames } from "./event-log.ts";

/** What {@link useEventLog} returns. */
interface FollowedLog {
  readonly log: EventLog;
  readonly clear: () => void;
}

/**
 * Follows a device by a stream, which begins with the frames of the last hour. Records come only while
 * `records` is set, and none from before.
 */
export function useEventLog(id: string, records: boolean): FollowedLog {
  const api = useApi();
  const [log, update] = useStreamed(queryKeys.log(id), emptyLog);
  const position = useRef(0);
  const add = useEffectEvent((frames: Parameters<typeof withFrames>[2]) => {
    position.current = frames.at(-1)?.seq ?? position.current;
    update((before) => withFrames(before, id, frames));
  });
  useEffect(() => {
    const ending = new AbortController();
    const take = gatherFrames((frames) => add(frames), ending.signal);
    const isStart = position.current === 0;
    let isFirst = true;
    void followNotifications({
      api,
      device: id,
      data: records,
      after: position.current,
      onFrame(frame) {
        // That older frames are not kept is no news at the start of the log.
        if (!(isStart && isFirst && frame.name === "gap")) take(frame);
        isFirst = false;
      },
      onState: () => {},
      onGap: () => {},
      visibility: pageVisibility(),
      signal: ending.signal,
    });
    return () => ending.abort();
  }, [api, id, records]);
  return {
    log,
    // The count continues, so that positions stay unique.
    clear: () => update((before) => ({ ...before, entries: [] })),
  };
}
