import { Notification } from "@devmesh/contracts/model/notification";
import type { ApiClient } from "../api/api-client.ts";
import { parsedEvent } from "./event-stream.ts";
import { followEventStream, type StreamState, type StreamTimeouts } from "./lasting-stream.ts";

/** Options of {@link followNotifications}. The server sends a heartbeat every 20 s. */
interface NotificationStreamOptions extends StreamTimeouts {
  readonly api: ApiClient;
  /** Id of the only device; empty for all. */
  readonly device?: string;
  /** With the records that devices publish. */
  readonly data?: boolean;
  /** With changes of keys and customers; not possible for one device. */
  readonly account?: boolean;
  /** Sequence number to begin after: 0 for all that is kept, an hour; default: only what happens from now on. */
  readonly after?: number;
  /** Called for each frame, in order. */
  readonly onFrame: (frame: Notification) => void;
  readonly onState: (state: StreamState) => void;
  /** Called when the stream starts, which has no earlier frames. */
  readonly onBegin?: () => void;
  /** Called when frames may be missing: data read before may be outdated. */
  readonly onGap: () => void;
  /** Ends the stream. */
  readonly signal: AbortSignal;
}

/** Follows the notification stream until `signal` fires; a reconnect resumes after the last received frame. */
export async function followNotifications(options: NotificationStreamOptions): Promise<void> {
  const { device = "", data = false, account = false, onFrame, onBegin, onGap, ...stream } = options;
  let after = options.after ?? null;
  await followEventStream({
    ...stream,
    address() {
      const query = new URLSearchParams();
      if (after !== null) query.set("after", String(after));
      if (device !== "") query.set("device", device);
      if (data) query.set("data", "1");
      if (account) query.set("account", "1");
      return `/api/v2/notify${query.size > 0 ? `?${query}` : ""}`;
    },
    onOpen(again) {
      if (!again) onBegin?.();
      // Without a received frame there is no position to resume at.
      else if (after === null) onGap();
    },
    onEvent(event) {
      const frame = event?.event === "message" ? parsedEvent(Notification, event.data) : null;
      if (frame === null) return;
      after = frame.seq;
      if (frame.name === "gap") onGap();
      onFrame(frame);
    },
  });
}

/**
 * How long frames are gathered before they are shown, in milliseconds: a large fleet sends more than anyone can read.
 */
const gatherMs = 200;

/** Takes frames, and delivers them in batches, one update of the page for each, until `signal` fires. */
export function gatherFrames(
  deliver: (frames: readonly Notification[]) => void,
  signal: AbortSignal,
): (frame: Notification) => void {
  let waiting: Notification[] = [];
  return (frame) => {
    waiting.push(frame);
    if (waiting.length > 1) return;
    setTimeout(() => {
      const frames = waiting;
      waiting = [];
      if (!signal.aborted) deliver(frames);
    }, gatherMs);
  };
}
