const units = [
  ["year", 31_536_000_000],
  ["month", 2_592_000_000],
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
] as const;

/** Units of {@link timeSpan}, from the day down. */
const spanUnits = [...units.slice(2), ["second", 1_000], ["millisecond", 1]] as const;

const inWords = new Intl.RelativeTimeFormat("en", { numeric: "always", style: "short" });

/** How far a time lies from another, both Unix ms, in words: "2 hr. ago", "in 3 days", "just now" below a minute. */
export function relativeTime(time: number, now: number): string {
  const away = time - now;
  for (const [unit, ms] of units) {
    if (Math.abs(away) >= ms) return inWords.format(Math.trunc(away / ms), unit);
  }
  return away > 1_000 ? "in a moment" : "just now";
}

/** A stretch of time in its largest unit, rounded up: "18 min", "3 hr". */
export function timeSpan(ms: number): string {
  const [unit, length] = spanUnits.find(([, each]) => ms >= each) ?? ["millisecond", 1];
  const format = new Intl.NumberFormat("en", { style: "unit", unit, unitDisplay: "short" });
  return format.format(Math.ceil(ms / length));
}
