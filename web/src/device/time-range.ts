/** Stretches of time that end now, by the word that stands for each in an address. */
export const lastRanges = {
  "15m": { label: "15 min", ms: 900_000 },
  "1h": { label: "1 h", ms: 3_600_000 },
  "24h": { label: "24 h", ms: 86_400_000 },
  "7d": { label: "7 d", ms: 604_800_000 },
} as const;
export type LastRange = keyof typeof lastRanges;

/** The time that is looked at. */
export type TimeRange =
  | { readonly kind: "last"; readonly range: LastRange }
  /** ISO 8601; `since` inclusive, `until` exclusive, each empty for no bound. */
  | { readonly kind: "between"; readonly since: string; readonly until: string };

/** What is looked at where an address says nothing, or nothing that can be understood. */
const defaultRange: LastRange = "1h";

/** The range that an address's query tells. */
export function rangeIn(query: URLSearchParams): TimeRange {
  const word = query.get("range") ?? defaultRange;
  if (word === "custom") {
    return { kind: "between", since: instantIn(query, "since"), until: instantIn(query, "until") };
  }
  return { kind: "last", range: isLastRange(word) ? word : defaultRange };
}

/** The query with a range in it, in place of another. */
export function withRange(query: URLSearchParams, range: TimeRange): URLSearchParams {
  const changed = new URLSearchParams(query);
  for (const name of ["range", "since", "until"]) changed.delete(name);
  if (range.kind === "last") {
    if (range.range !== defaultRange) changed.set("range", range.range);
    return changed;
  }
  changed.set("range", "custom");
  if (range.since !== "") changed.set("since", range.since);
  if (range.until !== "") changed.set("until", range.until);
  return changed;
}

/** The range as it lies now, to be changed at will. */
export function asBetween(range: TimeRange, now: number): TimeRange & { readonly kind: "between" } {
  if (range.kind === "between") return range;
  return { kind: "between", since: new Date(now - lastRanges[range.range].ms).toISOString(), until: "" };
}

/** Whether a word stands for a stretch of time that ends now. */
export function isLastRange(word: string): word is LastRange {
  return Object.hasOwn(lastRanges, word);
}

/** Empty where there is none. */
function instantIn(query: URLSearchParams, name: string): string {
  const time = Date.parse(query.get(name) ?? "");
  return Number.isNaN(time) ? "" : new Date(time).toISOString();
}
