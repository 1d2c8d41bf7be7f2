import { dateFormat } from "./locale.ts";
import { countText } from "./number-text.ts";

const units = [
  ["y", 31_536_000_000],
  ["mo", 2_592_000_000],
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
] as const;

/** Units of {@link timeSpan}, from the day down. */
const spanUnits = [...units.slice(2), ["s", 1_000], ["ms", 1]] as const;

/** How far a time lies from another, both Unix ms, in words: "2 h ago", "in 3 d", "just now" below a minute. */
export function relativeTime(time: number, now: number): string {
  const away = time - now;
  for (const [unit, ms] of units) {
    const count = Math.trunc(Math.abs(away) / ms);
    if (count > 0) return away > 0 ? `in ${count} ${unit}` : `${count} ${unit} ago`;
  }
  return away > 1_000 ? "in a moment" : "just now";
}

/** A stretch of time in its largest unit, rounded up: "18 min", "3 h". */
export function timeSpan(ms: number): string {
  const [unit, length] = spanUnits.find(([, each]) => ms >= each) ?? ["ms", 1];
  return `${countText(Math.ceil(ms / length))} ${unit}`;
}

/** A stretch of time in its two largest units: "6 d 4 h". */
export function longSpan(ms: number): string {
  const at = spanUnits.findIndex(([, each]) => ms >= each);
  const [unit, length] = spanUnits[at] ?? ["ms", 1];
  const [lesser, part] = spanUnits[at + 1] ?? ["", 0];
  const rest = part === 0 || unit === "s" ? 0 : Math.trunc((ms % length) / part);
  const whole = `${countText(Math.trunc(ms / length))} ${unit}`;
  return rest === 0 ? whole : `${whole} ${rest} ${lesser}`;
}

/** Date and time with seconds. */
export function dateTimeText(at: number | string): string {
  return dateFormat({ dateStyle: "medium", timeStyle: "medium" }).format(new Date(at));
}

/** Time of the day with seconds. */
export function clockText(at: number | string): string {
  return dateFormat({ timeStyle: "medium" }).format(new Date(at));
}

/** Time of the day without seconds. */
export function dayTimeText(at: number | string): string {
  return dateFormat({ timeStyle: "short" }).format(new Date(at));
}

/** Date without a time. */
export function dateText(at: number | string): string {
  return dateFormat({ dateStyle: "short" }).format(new Date(at));
}

/** The time of a day that is today, else the date: for the edge of a list. */
export function shortTimeText(at: number | string, now: number): string {
  const then = new Date(at);
  return then.toDateString() === new Date(now).toDateString()
    ? dateFormat({ timeStyle: "short" }).format(then)
    : dateFormat({ day: "numeric", month: "short" }).format(then);
}
