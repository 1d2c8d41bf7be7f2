import { SegmentedControl } from "@mantine/core";
import { Suspense, useMemo } from "react";
import { Card } from "../../../components/card.tsx";
import { lazyView } from "../../../components/lazy-view.ts";
import { countText, valueText } from "../../../components/number-text.ts";
import { timeSpan } from "../../../components/time-in-words.ts";
import { Waiting } from "../../../components/waiting.tsx";
import { chartFormat } from "../../data/chart-format.ts";
import { type ChartRangeName, chartRanges, isChartRangeName } from "../../data/chart-ranges.ts";
import type { ChartView } from "../../data/chart-view.ts";
import type { PlotLimits } from "../../data/plot-limits.ts";
import { summaryOf, type TopicNumbers } from "../../data/topic-numbers.ts";
import type { DeviceValue } from "./device-values.ts";
import styles from "./value-chart.module.css";

const Plot = lazyView(async () => (await import("../../data/plot.tsx")).Plot);

/** Properties of {@link ValueChart}. */
interface ValueChartProps {
  readonly value: DeviceValue;
  readonly limits: PlotLimits;
  /** The numbers of its topic; undefined without any. */
  readonly numbers: TopicNumbers | undefined;
  readonly isReading: boolean;
  /** The stretch of time, Unix ms. */
  readonly from: number;
  readonly to: number;
  readonly range: ChartRangeName;
  readonly onRange: (range: ChartRangeName) => void;
  readonly view: ChartView;
  readonly onZoom: (zoom: ChartView["zoom"]) => void;
}

/** One value of a device over time, with its figures in the header. */
export function ValueChart({
  value,
  limits,
  numbers,
  isReading,
  from,
  to,
  range,
  onRange,
  view,
  onZoom,
}: ValueChartProps) {
  const series = numbers?.series.find(({ name }) => name === value.series);
  const shown = view.zoom ?? { from, to };
  const summary = series === undefined ? null : summaryOf(series, shown.from, shown.to);
  const unit = value.unit === undefined ? "" : ` ${value.unit}`;
  const format = useMemo(() => chartFormat(view.zone), [view.zone]);
  const { name, unit: measure } = value;
  const placed = useMemo(
    () => (series === undefined ? [] : [{ series, place: 0, label: name, unit: measure }]),
    [series, name, measure],
  );
  return (
    <Card
      title={value.name}
      mark={
        typeof value.value === "number" && (
          <strong className={styles.now}>
            {valueText(value.value)}
            {unit}
          </strong>
        )
      }
      actions={
        <SegmentedControl
          aria-label="Time that is shown"
          value={range}
          onChange={(chosen) => isChartRangeName(chosen) && onRange(chosen)}
          data={Object.entries(chartRanges).map(([name, { label }]) => ({ value: name, label }))}
        />
      }
    >
      <dl className={styles.summary}>
        {summary !== null &&
          (
            [
              ["min", valueText(summary.least)],
              ["mean", format.mean(summary)],
              ["max", valueText(summary.most)],
              ["values", countText(summary.count)],
              ...(numbers?.stepMs == null ? [] : [["a point", timeSpan(numbers.stepMs)] as const]),
            ] as const
          ).map(([term, text]) => (
            <div key={term}>
              <dt>{term}</dt> <dd>{text}</dd>
            </div>
          ))}
      </dl>
      {isReading ? (
        <Waiting rows={5} />
      ) : series === undefined ? (
        <p className={styles.none}>No number of it in this time.</p>
      ) : (
        <Suspense fallback={<Waiting rows={5} />}>
          <Plot
            series={placed}
            from={shown.from}
            to={shown.to}
            zone={view.zone}
            format={format}
            limits={limits}
            onZoom={onZoom}
          />
        </Suspense>
      )}
    </Card>
  );
}
