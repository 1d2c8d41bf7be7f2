import { Notification } from "@devmesh/contracts/model/notification";
import type { ApiClient } from "../api/api-client.ts";
import { followEventStream, type StreamPatience, type StreamState } from "./lasting-stream.ts";

/** What the stream is opened with; the server's heartbeats come each 20 s. */
interface NotificationStreamOptions extends StreamPatience {
  readonly api: ApiClient;
  /** Only what happens to this device; empty for all. */
  readonly device?: string;
  /** Records that devices publish, too. */
  readonly data?: boolean;
  /** Changes of keys and customers, too; not of a single device. */
  readonly account?: boolean;
  /** Called for each frame, in order. */
  readonly onFrame: (frame: Notification) => void;
  readonly onState: (state: StreamState) => void;
  /** Called when the stream begins: it does not tell what happened before. */
  readonly onBegin?: () => void;
  /** Called when frames may have been missed: what was read before may be out of date. */
  readonly onGap: () => void;
  /** Ends the stream. */
  readonly signal: AbortSignal;
}

/** Follows the notification stream until `signal` fires; a connection that is lost goes on behind the last frame seen. */
export async function followNotifications(options: NotificationStreamOptions): Promise<void> {
  const { device = "", data = false, account = false, onFrame, onBegin, onGap, ...stream } = options;
  let after: number | null = null;
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
      // Without a frame seen there is nothing to go on behind.
      else if (after === null) onGap();
    },
    onEvent(event) {
      const frame = event?.event === "message" ? parsedFrame(event.data) : null;
      if (frame === null) return;
      after = frame.seq;
      if (frame.name === "gap") onGap();
      onFrame(frame);
    },
  });
}

/** Null for what is no frame: a later release may send more than this one knows. */
function parsedFrame(text: string): Notification | null {
  try {
    return Notification.parse(JSON.parse(text));
  } catch {
    return null;
  }
}
