import { Stack, Text } from "@mantine/core";
import { Suspense, useMemo } from "react";
import { type Column, DataTable } from "../../components/data-table.tsx";
import { lazyView } from "../../components/lazy-view.ts";
import { countText } from "../../components/number-text.ts";
import { timeSpan } from "../../components/time-in-words.ts";
import { Waiting } from "../../components/waiting.tsx";
import { type ChartFormat, chartFormat } from "./chart-format.ts";
import type { ChartRange, ChartView } from "./chart-view.ts";
import type { ChartedNumbers } from "./charted-records.ts";
import { groupsBySize } from "./series-sizes.ts";
import { mostSeries, mostTopics, summaryOf, type TopicNumbers } from "./topic-numbers.ts";

const Plot = lazyView(async () => (await import("./plot.tsx")).Plot);

/** A row of the summary. */
interface SummarisedSeries {
  readonly name: string;
  /** Null without a number in the range. */
  readonly summary: ReturnType<typeof summaryOf>;
}

/** The columns of the summary in the language of a chart. */
function columnsOf({ number }: ChartFormat): readonly Column<SummarisedSeries>[] {
  return [
    { heading: "Series", namesRow: true, cell: ({ name }) => name },
    { heading: "Latest", cell: ({ summary }) => summary && number(summary.latest) },
    { heading: "Min", cell: ({ summary }) => summary && number(summary.least) },
    { heading: "Max", cell: ({ summary }) => summary && number(summary.most) },
    { heading: "Mean", cell: ({ summary }) => summary && number(summary.mean) },
    { heading: "Values", cell: ({ summary }) => countText(summary?.count ?? 0) },
  ];
}

/** Properties of {@link TopicChart}. */
interface TopicChartProps {
  readonly topic: string;
  readonly numbers: TopicNumbers;
  /** The stretch of time that is shown, Unix ms; null: from the first number, to the last one. */
  readonly from: number | null;
  readonly to: number | null;
  readonly view: ChartView;
  readonly onZoom: (zoom: ChartRange | null) => void;
}

/** Draws the numbers of a topic, with a table that sums up what is seen of them. */
export function TopicChart({ topic, numbers, from, to, view, onZoom }: TopicChartProps) {
  const { times, series, hasMoreSeries, stepMs } = numbers;
  const range = view.zoom ?? rangeOf(times, from, to);
  const format = useMemo(() => chartFormat(view.zone), [view.zone]);
  const groups = useMemo(() => groupsBySize(series), [series]);
  return (
    <Stack gap="xs">
      <Suspense fallback={<Waiting />}>
        {groups.map((group) => (
          <Plot
            key={group.map(({ place }) => place).join()}
            times={times}
            series={group}
            from={range.from}
            to={range.to}
            zone={view.zone}
            format={format}
            onZoom={onZoom}
          />
        ))}
      </Suspense>
      {(stepMs !== null || hasMoreSeries) && (
        <Text size="xs" c="dimmed">
          {stepMs !== null && `The chart shows the min and max of every ${timeSpan(stepMs)}. `}
          {hasMoreSeries && `Only ${mostSeries} series are shown.`}
        </Text>
      )}
      <DataTable
        label={`Numbers of ${topic}`}
        minWidth={480}
        columns={columnsOf(format)}
        rows={series.map((each) => ({ name: each.name, summary: summaryOf(each, range.from, range.to) }))}
        keyOf={({ name }) => name}
      />
    </Stack>
  );
}

/** The range, Unix ms; its length is positive. */
function rangeOf(times: readonly number[], from: number | null, to: number | null): ChartRange {
  const range = {
    from: from ?? Math.round((times.at(0) ?? 0) * 1_000),
    to: to ?? Math.round((times.at(-1) ?? 0) * 1_000),
  };
  return range.from < range.to ? range : { from: range.from - 30_000, to: range.to + 30_000 };
}

/** Notes on a chart: how many records it is made of, and which are left out. */
export function chartNotes(numbers: ChartedNumbers | null, isReading: boolean, isLive: boolean): string {
  if (numbers === null) return "";
  const { records, isCut, hasMoreTopics } = numbers;
  const count = records === 1 ? "1 record" : `${countText(records)} records`;
  const notes = [
    isReading
      ? `${count} read, reading on.`
      : isCut
        ? `Only the newest ${count} are shown: choose a shorter range to see earlier ones.`
        : `${count} read.`,
    isLive ? "Live." : "",
    hasMoreTopics ? `Only ${mostTopics} topics are shown.` : "",
  ];
  return notes.filter((note) => note !== "").join(" ");
}
