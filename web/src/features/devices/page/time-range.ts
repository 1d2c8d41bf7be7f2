import { chartRanges } from "../../data/chart-ranges.ts";

/** Ranges that end now, by their names in the address. */
export const lastRanges = {
  "15m": { label: "15 min", ms: 900_000 },
  "1h": chartRanges["1h"],
  "24h": chartRanges["24h"],
  "7d": chartRanges["7d"],
} as const;
export type LastRange = keyof typeof lastRanges;

/** The longest range whose records are read one by one, in milliseconds: longer ones are read by spans of time. */
export const longestOfRecords = lastRanges["7d"].ms;

/** The shown range of time. */
export type TimeRange =
  | { readonly kind: "last"; readonly range: LastRange }
  /** ISO 8601; `since` inclusive, `until` exclusive, each empty for no bound. */
  | { readonly kind: "between"; readonly since: string; readonly until: string };

/** The range if the address has none, or no valid one. */
const defaultRange: LastRange = "1h";

/** A range as values of the page's address. */
export const rangeDefaults = { range: defaultRange as string, since: "", until: "" };
type RangeValues = typeof rangeDefaults;

/** Reads a range from values of the address. */
export function rangeIn({ range, since, until }: RangeValues): TimeRange {
  if (range === "custom") return { kind: "between", since: instantOf(since), until: instantOf(until) };
  return { kind: "last", range: isLastRange(range) ? range : defaultRange };
}

/** Values of the address for a range. */
export function valuesOf(range: TimeRange): RangeValues {
  if (range.kind === "last") return { range: range.range, since: "", until: "" };
  return { range: "custom", since: range.since, until: range.until };
}

/** The range with fixed bounds. */
export function asBetween(range: TimeRange, now: number): TimeRange & { readonly kind: "between" } {
  if (range.kind === "between") return range;
  return { kind: "between", since: new Date(now - lastRanges[range.range].ms).toISOString(), until: "" };
}

/** Whether a word names a range that ends now. */
export function isLastRange(word: string): word is LastRange {
  return Object.hasOwn(lastRanges, word);
}

/** Empty if the text is no time. */
function instantOf(text: string): string {
  const time = Date.parse(text);
  return Number.isNaN(time) ? "" : new Date(time).toISOString();
}

/** Least stretch of time that a chart shows, in milliseconds. */
const leastShownMs = 60_000;

/** Where a chart of a device begins, Unix ms: not before the device was created, since nothing can be there. */
export function beginOf(from: number, createdAt: string, to: number): number {
  return Math.max(from, Math.min(Date.parse(createdAt), to - leastShownMs));
}
