import { Notification } from "@devmesh/contracts/model/notification";
import type { ApiClient } from "../api/api-client.ts";
import { ApiProblem } from "../api/api-problem.ts";
import { readEventStream } from "./event-stream.ts";

/** How the stream stands. `unavailable`: the server has none, or refuses it for now; it is asked again all the same. */
export type StreamState = "connecting" | "live" | "reconnecting" | "unavailable";

/** What a stream is opened with. */
export interface NotificationStreamOptions {
  readonly api: ApiClient;
  /** Records that devices publish, too. */
  readonly data?: boolean;
  /** Changes of keys and customers, too. */
  readonly account?: boolean;
  /** Called for each frame, in order. */
  readonly onFrame: (frame: Notification) => void;
  readonly onState: (state: StreamState) => void;
  /** Called when frames may have been missed: what was read before may be out of date. */
  readonly onGap: () => void;
  /** Ends the stream. */
  readonly signal: AbortSignal;
  /** Waits before each further attempt, in milliseconds; the last one stays. */
  readonly backOffMs?: readonly number[];
  /** A stream without even a heartbeat for so long is dead, in milliseconds; the server's beats come each 20 s. */
  readonly silenceMs?: number;
}

const defaultBackOffMs = [250, 1_000, 2_000, 5_000, 10_000, 30_000] as const;
const defaultSilenceMs = 50_000;

/**
 * Follows the notification stream until `signal` fires: reconnects with back-off and goes on behind the last frame it
 * saw. The key goes in a header, never into the URL. A key that is refused (401) ends it, as the client tells its owner.
 */
export async function followNotifications(options: NotificationStreamOptions): Promise<void> {
  const { onFrame, onState, onGap, signal, backOffMs = defaultBackOffMs } = options;
  let after: number | null = null;
  let wasLive = false;
  let failures = 0;
  onState("connecting");
  while (!signal.aborted) {
    try {
      for await (const happening of connection(options, after)) {
        if (happening === "open") {
          // Without a frame seen there is nothing to go on behind.
          if (wasLive && after === null) onGap();
          wasLive = true;
          failures = 0;
          onState("live");
          continue;
        }
        after = happening.seq;
        if (happening.name === "gap") onGap();
        onFrame(happening);
      }
      if (wasLive) onState("reconnecting");
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiProblem) {
        if (error.status === 401) return;
        onState("unavailable");
      } else {
        onState(wasLive ? "reconnecting" : "connecting");
      }
    }
    const wait = backOffMs[Math.min(failures, backOffMs.length - 1)] ?? 0;
    failures += 1;
    // Many pages that lost the same gateway must not come back at the same instant.
    await pause(wait * (0.5 + Math.random() / 2), signal);
  }
}

/** One connection: `open` when the server has accepted it, then its frames. Throws when it is refused, lost or silent. */
async function* connection(
  { api, data = false, account = false, signal, silenceMs = defaultSilenceMs }: NotificationStreamOptions,
  after: number | null,
): AsyncGenerator<"open" | Notification, void, undefined> {
  const query = new URLSearchParams();
  if (after !== null) query.set("after", String(after));
  if (data) query.set("data", "1");
  if (account) query.set("account", "1");
  const silence = new AbortController();
  const silent = () => silence.abort(new Error("the stream is silent"));
  let alarm = setTimeout(silent, silenceMs);
  try {
    const response = await api.open(`/api/v2/notify${query.size > 0 ? `?${query}` : ""}`, {
      headers: { Accept: "text/event-stream" },
      signal: AbortSignal.any([signal, silence.signal]),
    });
    const type = response.headers.get("Content-Type") ?? "";
    if (response.body === null || !type.startsWith("text/event-stream")) {
      await response.body?.cancel();
      throw new ApiProblem({
        status: 406,
        reason: "unreadable",
        detail: "The server has no notification stream.",
        requestId: response.headers.get("X-Request-Id"),
        errors: [],
        code: 406,
      });
    }
    yield "open";
    for await (const event of readEventStream(response.body)) {
      clearTimeout(alarm);
      alarm = setTimeout(silent, silenceMs);
      const frame = event?.event === "message" ? parsedFrame(event.data) : null;
      if (frame !== null) yield frame;
    }
  } finally {
    clearTimeout(alarm);
  }
}

/** Null for what is no frame: a later release may send more than this one knows. */
function parsedFrame(text: string): Notification | null {
  try {
    return Notification.parse(JSON.parse(text));
  } catch {
    return null;
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done, { once: true });
    function done() {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    }
  });
}
