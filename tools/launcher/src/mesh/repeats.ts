/** Time, in milliseconds, in which a line that was shown is not shown again. */
const QUIET_MS = 10_000;
/** Lines that are remembered at most. */
const REMEMBERED = 200;

/**
 * Shows each line, but one that repeats only every ten seconds, with how often it came meanwhile: a fault that hits
 * every message must not bury the rest. `now` is any monotonic clock in milliseconds.
 */
export function withoutRepeats(show: (line: string) => void, now: () => number): (line: string) => void {
  const shown = new Map<string, { at: number; more: number }>();
  return (line) => {
    const before = shown.get(line);
    if (before && now() - before.at < QUIET_MS) {
      before.more++;
      return;
    }
    shown.delete(line);
    shown.set(line, { at: now(), more: 0 });
    const [oldest] = shown.keys();
    if (shown.size > REMEMBERED && oldest !== undefined) shown.delete(oldest);
    show(before && before.more > 0 ? `${line} (${before.more} more in between)` : line);
  };
}
