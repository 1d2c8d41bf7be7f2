import { lengthOf } from "@devmesh/contracts/model/duration";
import type { ChartRange } from "./chart-view.ts";
import type { NumericSeries, TopicNumbers } from "./topic-numbers.ts";

/** What is asked of each span, in this order. */
export const askedOfSpans = ["count", "sum", "min", "max", "last"] as const;

/** Points of one series, as `GET /series` answers them for {@link askedOfSpans}. */
interface AnsweredSeries {
  readonly name: string;
  readonly points: readonly (readonly (string | number | null)[])[];
}

/**
 * The numbers of a topic that an answer has in spans of this length, as a chart shows them: in the middle of each, and
 * within the range, which begins and ends in a span.
 */
export function spanNumbers(
  every: string,
  series: readonly AnsweredSeries[],
  { from, to }: ChartRange,
): TopicNumbers {
  const stepMs = lengthOf(every);
  const all = series.map(({ name, points }) => {
    const steps = points.flatMap(([begin, count, sum, min, max, last]) => {
      if (typeof min !== "number" || typeof max !== "number" || typeof last !== "number") return [];
      const at = Math.max(from, Math.min(to, Date.parse(String(begin)) + stepMs / 2));
      const of = (value: number) => ({ value, at, id: at });
      return { count: Number(count), sum: Number(sum), least: of(min), most: of(max), latest: of(last) };
    });
    return { name, steps };
  });
  const times = [...new Set(all.flatMap(({ steps }) => steps.map(({ most }) => most.at)))].sort(
    (a, b) => a - b,
  );
  return {
    times: times.map((at) => at / 1_000),
    series: all.map(({ name, steps }): NumericSeries => {
      const means = new Map(steps.map(({ most, sum, count }) => [most.at, sum / count]));
      return { name, steps, values: times.map((at) => means.get(at) ?? null) };
    }),
    hasMoreSeries: false,
    stepMs,
  };
}
