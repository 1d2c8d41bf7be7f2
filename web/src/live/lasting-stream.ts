import type { ApiClient } from "../api/api-client.ts";
import { ApiProblem } from "../api/api-problem.ts";
import { pause } from "../api/pause.ts";
import { readEventStream, type ServerEvent } from "./event-stream.ts";
import type { Sight } from "./page-sight.ts";

/** How a stream stands. `unavailable`: the server has none, or refuses it for now; it is asked again all the same. */
export type StreamState = "connecting" | "live" | "reconnecting" | "unavailable";

/** How a stream is lost and found again. */
export interface StreamPatience {
  /** Waits before each further attempt, in milliseconds; the last one stays. */
  readonly backOffMs?: readonly number[];
  /** A stream without even a comment for so long is dead, in milliseconds. */
  readonly silenceMs?: number;
  /** While the page is out of sight there is no connection; without it, the page counts as always in sight. */
  readonly sight?: Sight;
}

/** What a stream is opened with. */
interface LastingStreamOptions extends StreamPatience {
  readonly api: ApiClient;
  /** Path and query, asked before each connection. */
  readonly address: () => string;
  /** Called when the server has accepted a connection; `again` when it is not the first. */
  readonly onOpen?: (again: boolean) => void;
  /** Called for each event, in order; null is a comment. */
  readonly onEvent: (event: ServerEvent | null) => void;
  readonly onState: (state: StreamState) => void;
  /** Ends the stream. */
  readonly signal: AbortSignal;
}

const defaultBackOffMs = [250, 1_000, 2_000, 5_000, 10_000, 30_000] as const;
const defaultSilenceMs = 50_000;

/**
 * Follows a `text/event-stream` until `signal` fires, with a new connection, after a back-off, for each that is lost. The key
 * goes in a header, never into the URL. A key that is refused (401) ends it, as the client tells its owner.
 */
export async function followEventStream(options: LastingStreamOptions): Promise<void> {
  const { onOpen, onState, signal, sight, backOffMs = defaultBackOffMs } = options;
  let wasLive = false;
  let failures = 0;
  const opened = () => {
    onOpen?.(wasLive);
    wasLive = true;
    failures = 0;
    onState("live");
  };
  onState("connecting");
  for (;;) {
    await sight?.seen(signal);
    if (signal.aborted) return;
    const watching = new AbortController();
    const unseen = sight?.lost(AbortSignal.any([signal, watching.signal])) ?? watching.signal;
    try {
      await followConnection(options, opened, unseen);
      onState("reconnecting");
    } catch (error) {
      if (signal.aborted) return;
      // It stands as it stood for who does not look, and goes on at once for who looks again.
      if (unseen.aborted) continue;
      if (error instanceof ApiProblem) {
        if (error.status === 401) return;
        onState("unavailable");
      } else {
        onState(wasLive ? "reconnecting" : "connecting");
      }
    } finally {
      watching.abort();
    }
    const wait = backOffMs[Math.min(failures, backOffMs.length - 1)] ?? 0;
    failures += 1;
    // Many pages that lost the same gateway must not come back at the same instant.
    await pause(wait * (0.5 + Math.random() / 2), signal);
  }
}

/** Follows one connection to its end. Throws when it is refused, lost, silent or no longer looked at. */
async function followConnection(
  { api, address, onEvent, signal, silenceMs = defaultSilenceMs }: LastingStreamOptions,
  opened: () => void,
  unseen: AbortSignal,
): Promise<void> {
  const silence = new AbortController();
  const silent = () => silence.abort(new Error("the stream is silent"));
  let alarm = setTimeout(silent, silenceMs);
  try {
    const response = await api.open(address(), {
      headers: { Accept: "text/event-stream" },
      signal: AbortSignal.any([signal, silence.signal, unseen]),
    });
    const type = response.headers.get("Content-Type") ?? "";
    if (response.body === null || !type.startsWith("text/event-stream")) {
      await response.body?.cancel();
      throw new ApiProblem({
        status: 406,
        reason: "unreadable",
        detail: "The server has no such stream.",
        requestId: response.headers.get("X-Request-Id"),
        errors: [],
        code: 406,
      });
    }
    opened();
    for await (const event of readEventStream(response.body)) {
      clearTimeout(alarm);
      alarm = setTimeout(silent, silenceMs);
      onEvent(event);
    }
  } finally {
    clearTimeout(alarm);
  }
}
