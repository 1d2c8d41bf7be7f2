import { lengthOf } from "@devmesh/contracts/model/duration";
import { maxPoints } from "@devmesh/contracts/model/series";

const [secondMs, dayMs] = [1_000, 86_400_000];

/** Lengths that `auto` chooses from, and that an error names. */
const usualLengths: readonly string[] = [
  ...["PT1S", "PT5S", "PT10S", "PT30S", "PT1M", "PT5M", "PT10M", "PT15M", "PT30M"],
  ...["PT1H", "PT2H", "PT6H", "PT12H", "P1D", "P2D", "P7D", "P14D", "P31D", "P99W"],
];

/** About how many points `auto` gives at most. */
const autoPoints = 500;

/** A range of time that is divided. */
export interface SpansRequest {
  /** Unix milliseconds; rounded down to the begin of a span. */
  readonly from: number;
  /** Exclusive; rounded up. */
  readonly until: number;
  /** As {@link Every}, not `auto`. */
  readonly every: string;
  /** IANA name; days, weeks and months begin at its midnight, others at multiples in UTC. */
  readonly tz: string;
}

/** The shortest usual length with at most so many spans in the range; the longest one where it has more. */
export function usualEvery(rangeMs: number, points: number = autoPoints): string {
  return usualLengths.find((every) => rangeMs / lengthOf(every) <= points) ?? "P99W";
}

/** The shortest usual length that a range may have. */
export function smallestEvery(rangeMs: number): string {
  // Rounding adds a span at each end.
  return usualEvery(rangeMs, maxPoints - 2);
}

/** Whether a length is that of days, weeks or months, which belong to a time zone. */
export function isOfCalendar(every: string): boolean {
  return !every.startsWith("PT");
}

/** The begins of all spans of a range, ascending, and the end of the last one. */
export function edgesOf({ from, until, every, tz }: SpansRequest): number[] {
  const edgeAfter = isOfCalendar(every) ? calendarEdges(every, tz, from) : fixedEdges(lengthOf(every), from);
  const edges: number[] = [];
  for (let at = 0; ; at++) {
    const edge = edgeAfter(at);
    edges.push(edge);
    if (edge >= until) return edges;
  }
}

function fixedEdges(length: number, from: number): (at: number) => number {
  const begin = Math.floor(from / length) * length;
  return (at) => begin + at * length;
}

/** 1970-01-05, a Monday, in days since 1970. */
const firstMonday = 4;

/** Several days count from the first of 1970 in the time zone, whole weeks from its first Monday (ISO 8601). */
function calendarEdges(every: string, tz: string, from: number): (at: number) => number {
  const offsetAt = offsetsOf(tz);
  const local = from + offsetAt(from);
  if (every === "P1M") {
    const date = new Date(local);
    const month = date.getUTCFullYear() * 12 + date.getUTCMonth();
    return (at) => beginOfDay(Date.UTC(Math.floor((month + at) / 12), (month + at) % 12), offsetAt);
  }
  const days = lengthOf(every) / dayMs;
  const origin = days % 7 === 0 ? firstMonday : 0;
  const first = origin + Math.floor((local / dayMs - origin) / days) * days;
  return (at) => beginOfDay((first + at * days) * dayMs, offsetAt);
}

/** The first moment of a day that is given as if it were in UTC. */
function beginOfDay(local: number, offsetAt: (at: number) => number): number {
  const offsets = [offsetAt(local - dayMs), offsetAt(local + dayMs)];
  const early = local - Math.max(...offsets);
  // Where the clock changes at midnight, the day begins with the later offset.
  return early + offsetAt(early) >= local ? early : local - Math.min(...offsets);
}

/** How far a time zone is before UTC at a time, in milliseconds. @throws RangeError for an unknown zone */
function offsetsOf(tz: string): (at: number) => number {
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone: tz,
    hourCycle: "h23",
    year: "numeric",
    month: "numeric",
    day: "numeric",
    hour: "numeric",
    minute: "numeric",
    second: "numeric",
  });
  return (at) => {
    const parts = new Map(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]));
    const of = (type: Intl.DateTimeFormatPartTypes) => parts.get(type) ?? 0;
    const local = Date.UTC(of("year"), of("month") - 1, of("day"), of("hour"), of("minute"), of("second"));
    return local - Math.floor(at / secondMs) * secondMs;
  };
}

/** Whether a time zone has this name. */
export function isTimeZone(name: string): boolean {
  try {
    offsetsOf(name);
    return true;
  } catch {
    return false;
  }
}
