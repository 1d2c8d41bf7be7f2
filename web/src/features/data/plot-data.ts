import type { PlacedSeries } from "./series-sizes.ts";
import type { NumericSeries } from "./topic-numbers.ts";

/** What a series was in a step of time. */
export interface SeriesPoint {
  /** Unix ms. */
  readonly at: number;
  readonly mean: number;
  readonly least: number;
  readonly most: number;
}

/** Null interrupts a line; undefined is a time that only another series has. */
type Drawn = number | null | undefined;

/** The values of one series at the times of all. */
export interface DrawnSeries {
  readonly means: readonly Drawn[];
  readonly least: readonly Drawn[];
  readonly most: readonly Drawn[];
  /** The nearest point to a time, Unix ms. */
  readonly at: (time: number) => SeriesPoint | null;
}

/** A pause that is so many times longer than the usual one interrupts a line. */
const longPause = 8;

/** The points of a series: its means, with their ranges where numbers were summed up. */
export function pointsOf({ steps }: NumericSeries): SeriesPoint[] {
  return steps.flatMap(({ count, sum, least, most }): SeriesPoint[] => {
    const single = { mean: least.value, least: least.value, most: least.value, at: least.at };
    if (count === 1) return [single];
    const at = (least.at + most.at) / 2;
    return [{ mean: sum / count, least: least.value, most: most.value, at }];
  });
}

/** The point of a series that is nearest to a time, Unix ms; null without one. */
export function pointAt(points: readonly SeriesPoint[], time: number): SeriesPoint | null {
  let [low, high] = [0, points.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if ((points[middle]?.at ?? 0) < time) low = middle;
    else high = middle;
  }
  const [before, after] = [points[low], points[high]];
  if (before === undefined || after === undefined) return null;
  return time - before.at < after.at - time ? before : after;
}

/** What a plot draws: times in seconds, and the values of each series at them. */
export function drawnData(series: readonly PlacedSeries[]): {
  readonly times: readonly number[];
  readonly series: readonly DrawnSeries[];
} {
  const all = series.map((each) => pointsOf(each.series));
  const columns = all.map(withPauses);
  const times = [...new Set(columns.flatMap((points) => [...points.keys()]))].sort((a, b) => a - b);
  return {
    times: times.map((at) => at / 1_000),
    series: columns.map((points, nth) => {
      const column = (value: (point: SeriesPoint) => number) =>
        times.map((at): Drawn => {
          const point = points.get(at);
          return point == null ? point : value(point);
        });
      return {
        means: column(({ mean }) => mean),
        least: column(({ least }) => least),
        most: column(({ most }) => most),
        at: (time) => pointAt(all[nth] ?? [], time),
      };
    }),
  };
}

/** The points by their times, with null in each long pause. */
function withPauses(points: readonly SeriesPoint[]): Map<number, SeriesPoint | null> {
  const pauses = points.slice(1).map(({ at }, nth) => at - (points[nth]?.at ?? at));
  const usual = pauses.toSorted((one, other) => one - other)[pauses.length >> 1] ?? 0;
  const found = new Map<number, SeriesPoint | null>();
  for (const [nth, point] of points.entries()) {
    const pause = pauses[nth - 1] ?? 0;
    if (usual > 0 && pause > usual * longPause) found.set(point.at - pause / 2, null);
    found.set(point.at, point);
  }
  return found;
}
