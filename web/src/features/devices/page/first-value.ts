import type { ChartedNumbers } from "../../data/charted-records.ts";
import type { DeviceValue } from "./device-values.ts";

/**
 * The value whose chart is shown until somebody chooses one: of the numbers, one that changed in the shown time, then
 * one that has a unit, then the one with the most points, then the newest. Undefined where no value is a number.
 */
export function firstValue(
  values: readonly DeviceValue[],
  { topics }: Pick<ChartedNumbers, "topics">,
): DeviceValue | undefined {
  const ranked = values
    .filter(({ value }) => typeof value === "number")
    .map((value) => {
      const steps = topics.get(value.topic)?.series.find(({ name }) => name === value.series)?.steps ?? [];
      const least = Math.min(...steps.map((step) => step.least.value));
      const most = Math.max(...steps.map((step) => step.most.value));
      const points = steps.reduce((sum, { count }) => sum + count, 0);
      return { value, rank: [Number(most > least), Number(value.unit !== undefined), points] as const };
    });
  return ranked.toSorted(
    (one, other) =>
      other.rank[0] - one.rank[0] ||
      other.rank[1] - one.rank[1] ||
      other.rank[2] - one.rank[2] ||
      Date.parse(other.value.at) - Date.parse(one.value.at),
  )[0]?.value;
}
