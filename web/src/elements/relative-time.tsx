import { useSyncExternalStore } from "react";
import { serverNow } from "../api/server-clock.ts";
import { relativeTime } from "./time-in-words.ts";

/** How often ages are told anew, in milliseconds; one timer serves all that are shown. */
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

/** How long ago something was, kept current; the exact local time on hovering. */
export function RelativeTime({
  at,
  never = "never",
}: {
  readonly at: string | null;
  readonly never?: string;
}) {
  useSyncExternalStore(subscribe, () => ticks);
  if (at === null) return never;
  const time = Date.parse(at);
  return (
    <time dateTime={at} title={new Date(time).toLocaleString()} style={{ whiteSpace: "nowrap" }}>
      {relativeTime(time, serverNow())}
    </time>
  );
}
