import type { ApiClient } from "../api/api-client.ts";
import { ApiProblem, UnexpectedAnswer } from "../api/api-problem.ts";
import { pause } from "../api/pause.ts";
import { readEventStream, type ServerEvent } from "./event-stream.ts";
import type { Visibility } from "./page-visibility.ts";

/** State of a stream. `unavailable`: the server refuses it; the client still tries again. */
export type StreamState = "connecting" | "live" | "reconnecting" | "unavailable";

/** Timeouts and retries of a stream. */
export interface StreamTimeouts {
  /** Delays before the retries, in milliseconds; the last one repeats. */
  readonly backOffMs?: readonly number[];
  /** Time without an event or comment after which a connection is dead, in milliseconds. */
  readonly silenceMs?: number;
  /** Time without one after which the server is asked whether it answers at all, in milliseconds. */
  readonly doubtMs?: number;
  /** A hidden page has no connection; without it, the page counts as visible. */
  readonly visibility?: Visibility;
}

/** Options of {@link followEventStream}. */
interface LastingStreamOptions extends StreamTimeouts {
  readonly api: ApiClient;
  /** Returns path and query, before each connection. */
  readonly address: () => string;
  /** Called when the server accepts a connection; `again` is false for the first. */
  readonly onOpen?: (again: boolean) => void;
  /** Called for each event, in order; null for a comment. */
  readonly onEvent: (event: ServerEvent | null) => void;
  readonly onState: (state: StreamState) => void;
  /** Ends the stream. */
  readonly signal: AbortSignal;
}

/** Short to the end, as views that read by themselves are back long before a banner that waits for the stream. */
const defaultBackOffMs = [250, 1_000, 2_000, 5_000] as const;
const defaultSilenceMs = 50_000;
/** A process that hangs keeps its connections: until the next heartbeat it looks like a quiet fleet. */
const defaultDoubtMs = 8_000;

/**
 * Follows a `text/event-stream` until `signal` fires and reconnects, after a back-off, when a connection is lost. The
 * key goes into a header, never into the URL; a refused key (401) ends the stream.
 */
export async function followEventStream(options: LastingStreamOptions): Promise<void> {
  const { onOpen, onState, signal, visibility, backOffMs = defaultBackOffMs } = options;
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
    await visibility?.visible(signal);
    if (signal.aborted) return;
    const watching = new AbortController();
    const hidden = visibility?.hidden(AbortSignal.any([signal, watching.signal])) ?? watching.signal;
    try {
      await followConnection(options, opened, hidden);
      onState("reconnecting");
    } catch (error) {
      if (signal.aborted) return;
      // A page that becomes visible again reconnects at once, and its state does not change before.
      if (hidden.aborted) continue;
      if (error instanceof ApiProblem && error.status === 401) return;
      const isRefused = error instanceof ApiProblem || error instanceof UnexpectedAnswer;
      onState(isRefused ? "unavailable" : wasLive ? "reconnecting" : "connecting");
    } finally {
      watching.abort();
    }
    const wait = backOffMs[Math.min(failures, backOffMs.length - 1)] ?? 0;
    failures += 1;
    // Pages that lost the same gateway must not reconnect at the same instant.
    await pause(wait * (0.5 + Math.random() / 2), signal);
  }
}

/** Follows one connection to its end. Throws if it is refused, lost, silent or hidden. */
async function followConnection(
  options: LastingStreamOptions,
  opened: () => void,
  hidden: AbortSignal,
): Promise<void> {
  const { api, address, onEvent, signal } = options;
  const ending = new AbortController();
  const silence = watchSilence(options, ending.signal);
  try {
    const response = await api.open(address(), {
      headers: { Accept: "text/event-stream" },
      signal: AbortSignal.any([signal, silence.signal, hidden]),
    });
    const type = response.headers.get("Content-Type") ?? "";
    if (response.body === null || !type.startsWith("text/event-stream")) {
      await response.body?.cancel();
      throw new UnexpectedAnswer(address(), type);
    }
    opened();
    for await (const event of readEventStream(response.body)) {
      silence.broken();
      onEvent(event);
    }
  } finally {
    ending.abort();
  }
}

/** A signal that fires when nothing was heard for too long, or the server does not answer when it is asked. */
function watchSilence(
  { api, silenceMs = defaultSilenceMs, doubtMs = defaultDoubtMs }: LastingStreamOptions,
  ended: AbortSignal,
): { readonly signal: AbortSignal; readonly broken: () => void } {
  const silence = new AbortController();
  const silent = () => silence.abort(new Error("the stream is silent"));
  let heard = 0;
  const ask = async () => {
    const before = heard;
    const answers = await api.answers(ended);
    if (!answers && heard === before) silent();
    else if (heard === before) doubt = setTimeout(ask, doubtMs);
  };
  let alarm = setTimeout(silent, silenceMs);
  let doubt = setTimeout(ask, doubtMs);
  const clear = () => {
    clearTimeout(alarm);
    clearTimeout(doubt);
  };
  ended.addEventListener("abort", clear, { once: true });
  return {
    signal: silence.signal,
    broken() {
      heard += 1;
      clear();
      alarm = setTimeout(silent, silenceMs);
      doubt = setTimeout(ask, doubtMs);
    },
  };
}
