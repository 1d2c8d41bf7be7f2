import { pointsOf } from "./plot-data.ts";
import type { PlacedSeries } from "./series-sizes.ts";

/** What a chart draws, as the lines of a file: a time, then mean, least and greatest of each series. */
export function drawnRows(placed: readonly PlacedSeries[]): readonly (readonly string[])[] {
  const columns = placed.map(({ series }) => new Map(pointsOf(series).map((point) => [point.at, point])));
  const times = [...new Set(columns.flatMap((points) => [...points.keys()]))].sort(
    (one, other) => one - other,
  );
  return [
    ["time", ...placed.flatMap(({ series: { name } }) => [`${name} mean`, `${name} min`, `${name} max`])],
    ...times.map((at) => [
      new Date(at).toISOString(),
      ...columns.flatMap((points) => {
        const { mean, least, most } = points.get(at) ?? {};
        return [mean, least, most].map((value) => value?.toString() ?? "");
      }),
    ]),
  ];
}
