import { useSyncExternalStore } from "react";
import { serverNow } from "../api/server-clock.ts";
import { dateTimeText, relativeTime } from "./time-in-words.ts";

/** Interval at which ages are updated, in milliseconds; one timer serves all of them. */
const tickMs = 5_000;

const listeners = new Set<() => void>();
let ticks = 0;
let timer: ReturnType<typeof setInterval> | null = null;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(() => {
    ticks += 1;
    for (const each of listeners) each();
  }, tickMs);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0 || timer === null) return;
    clearInterval(timer);
    timer = null;
  };
}

/** The time of the server, Unix ms, kept current. */
export function useServerTime(): number {
  useSyncExternalStore(subscribe, () => ticks);
  return serverNow();
}

/** The age of a time, kept current, or "never"; its title has the exact local time. */
export function RelativeTime({ at }: { readonly at: string | null }) {
  const now = useServerTime();
  if (at === null) return "never";
  const time = Date.parse(at);
  return (
    <time dateTime={at} title={dateTimeText(time)} style={{ whiteSpace: "nowrap" }}>
      {relativeTime(time, now)}
    </time>
  );
}
