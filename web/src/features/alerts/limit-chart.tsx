import { membersOf } from "@devmesh/contracts/model/json-pointer";
import type { ValueCondition } from "@devmesh/contracts/model/rule";
import { deviceTopics } from "@devmesh/contracts/mqtt";
import { Text } from "@mantine/core";
import { Suspense, useMemo } from "react";
import { serverNow } from "../../api/server-clock.ts";
import { Failure } from "../../components/failure.tsx";
import { lazyView } from "../../components/lazy-view.ts";
import { Waiting } from "../../components/waiting.tsx";
import { chartFormat } from "../data/chart-format.ts";
import type { ChartRange } from "../data/chart-view.ts";
import { useChartedNumbers } from "../data/use-charted-numbers.ts";
import { isOn, linesOf } from "./rule-limits.ts";

const Plot = lazyView(async () => (await import("../data/plot.tsx")).Plot);

/** Maximum of records in the chart: the newest ones. */
const mostRecords = 20_000;

/** Properties of {@link LimitChart}. */
interface LimitChartProps {
  readonly device: string;
  readonly when: ValueCondition;
  /** Unix ms. */
  readonly from: number;
  /** Unix ms; null for now, and then live. */
  readonly until: number | null;
  /** Times for which the condition held. */
  readonly held: readonly ChartRange[];
}

/** What a condition on a value looks at, over time, with its limits. */
export function LimitChart({ device, when, from, until, held }: LimitChartProps) {
  const selection = useMemo(
    () => ({
      filter: "",
      device,
      since: new Date(from).toISOString(),
      until: until === null ? "" : new Date(until).toISOString(),
    }),
    [device, from, until],
  );
  const { numbers, error, isReading, readAgain } = useChartedNumbers({
    selection,
    lastMs: null,
    mostRecords,
    live: until === null,
  });
  const format = useMemo(() => chartFormat("local"), []);
  const limits = useMemo(() => ({ lines: linesOf(when, ""), held }), [when, held]);
  const series = useMemo(() => {
    const name = membersOf(when.pointer).join(".") || "value";
    return [...(numbers?.topics ?? [])].flatMap(([topic, { series: all }]) => {
      const relative = topic.slice(deviceTopics.record(device, "").length);
      const found = isOn(when, relative, when.pointer) && all.find((each) => each.name === name);
      return found ? [{ series: found, label: relative }] : [];
    });
  }, [numbers, when, device]);
  const placed = useMemo(() => series.map((each, place) => ({ ...each, place })), [series]);
  if (error !== null)
    return <Failure error={error} title="The records could not be read" onRetry={readAgain} />;
  if (numbers === null || (isReading && placed.length === 0)) return <Waiting rows={5} />;
  if (placed.length === 0)
    return (
      <Text size="sm" c="dimmed">
        No number of it in this time.
      </Text>
    );
  return (
    <Suspense fallback={<Waiting rows={5} />}>
      <Plot
        series={placed}
        from={from}
        to={until ?? serverNow()}
        zone="local"
        format={format}
        limits={limits}
        isSmall
        onZoom={() => {}}
      />
    </Suspense>
  );
}
