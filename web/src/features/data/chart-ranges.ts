const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/** The ranges back from now that charts offer, by their names; `duration` is ISO 8601. */
export const chartRanges = {
  "1h": { duration: "PT1H", label: "1 h", ms: hourMs },
  "6h": { duration: "PT6H", label: "6 h", ms: 6 * hourMs },
  "24h": { duration: "P1D", label: "24 h", ms: dayMs },
  "7d": { duration: "P7D", label: "7 d", ms: 7 * dayMs },
  "30d": { duration: "P30D", label: "30 d", ms: 30 * dayMs },
  "1y": { duration: "P365D", label: "1 y", ms: 365 * dayMs },
  "2y": { duration: "P730D", label: "2 y", ms: 730 * dayMs },
} as const;
export type ChartRangeName = keyof typeof chartRanges;

/** The ranges as choices of a control whose values are durations. */
export const durationChoices: readonly { readonly value: string; readonly label: string }[] = Object.values(
  chartRanges,
).map(({ duration, label }) => ({ value: duration, label }));

/** Whether a word names a range. */
export function isChartRangeName(word: string): word is ChartRangeName {
  return Object.hasOwn(chartRanges, word);
}

/** Whether a range has this duration. */
export function isChartDuration(text: string): boolean {
  return durationChoices.some(({ value }) => value === text);
}
