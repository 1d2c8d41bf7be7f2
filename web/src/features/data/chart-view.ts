/** How charts are looked at, as values of the page's address. */
export const chartViewDefaults = { zoom: "", zone: "" };
type ChartViewValues = typeof chartViewDefaults;

/** A stretch of time, Unix ms. */
export interface ChartRange {
  readonly from: number;
  readonly to: number;
}

/** How charts are looked at. */
export interface ChartView {
  /** The part that is shown; null for all. */
  readonly zoom: ChartRange | null;
  readonly zone: "local" | "UTC";
}

/** Reads the view from values of the address; what is not valid is ignored. */
export function chartViewIn({ zoom, zone }: ChartViewValues): ChartView {
  const [from = Number.NaN, to = Number.NaN] = zoom.split("/").map((time) => Date.parse(time));
  return { zoom: from < to ? { from, to } : null, zone: zone === "utc" ? "UTC" : "local" };
}

/** A zoom as a value of the address: an ISO 8601 interval. */
export function zoomValue(zoom: ChartRange | null): string {
  return zoom === null ? "" : `${new Date(zoom.from).toISOString()}/${new Date(zoom.to).toISOString()}`;
}
