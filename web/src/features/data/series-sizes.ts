import type { NumericSeries } from "./topic-numbers.ts";

/** Series whose largest numbers differ by more than this factor get separate charts. */
const mostTimesLarger = 10;

/** Number of colours of `tokens.css` for series; later series have the same ones, in dashes. */
const seriesColors = 6;

/** Colour of a series in CSS. */
function seriesColor(place: number): string {
  return `var(--series-${(place % seriesColors) + 1})`;
}

/** Whether the line of a series is dashed. */
export function isDashed(place: number): boolean {
  return place >= seriesColors;
}

/** The background of the mark that represents the line of a series. */
export function markOf(place: number): string {
  const color = seriesColor(place);
  return isDashed(place) ? `linear-gradient(90deg, ${color} 4px, transparent 4px 7px, ${color} 7px)` : color;
}

/** A series and its place among those of its topic, which gives it its colour. */
export interface PlacedSeries {
  readonly series: NumericSeries;
  readonly place: number;
  /** What people call it, if not by its name. */
  readonly label?: string | undefined;
  readonly unit?: string | undefined;
}

/** The series of a topic in charts: one for each unit, and those without a unit by their size. */
export function groupsByUnit(all: readonly PlacedSeries[]): readonly (readonly PlacedSeries[])[] {
  const byUnit = Map.groupBy(all, ({ unit }) => unit);
  return [...byUnit].flatMap(([unit, members]) => (unit === undefined ? groupsBySize(members) : [members]));
}

/** The series of a topic in groups of similar size, so that small numbers are no flat line beside large ones. */
export function groupsBySize(all: readonly PlacedSeries[]): readonly (readonly PlacedSeries[])[] {
  const sized = all
    .map((placed) => ({ placed, size: sizeOf(placed.series) }))
    .sort((one, other) => other.size - one.size);
  const groups: PlacedSeries[][] = [];
  let largest = 0;
  for (const { placed, size } of sized) {
    const last = groups.at(-1);
    // Nothing is known of the size of a series of zeros.
    if (last !== undefined && (size === 0 || largest <= size * mostTimesLarger)) last.push(placed);
    else {
      groups.push([placed]);
      largest = size;
    }
  }
  return groups.map((group) => group.sort((one, other) => one.place - other.place));
}

function sizeOf({ steps }: NumericSeries): number {
  let size = 0;
  for (const { least, most } of steps) size = Math.max(size, Math.abs(least.value), Math.abs(most.value));
  return size;
}
