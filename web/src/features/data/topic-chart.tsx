import { Stack, Text } from "@mantine/core";
import { Suspense } from "react";
import { type Column, DataTable } from "../../components/data-table.tsx";
import { lazyView } from "../../components/lazy-view.ts";
import { timeSpan } from "../../components/time-in-words.ts";
import { Waiting } from "../../components/waiting.tsx";
import type { ChartedNumbers } from "./charted-records.ts";
import { mostSeries, mostTopics, type TopicNumbers } from "./topic-numbers.ts";

const Plot = lazyView(async () => (await import("./plot.tsx")).Plot);

const columns: readonly Column<TopicNumbers["series"][number]>[] = [
  { heading: "Series", namesRow: true, cell: ({ name }) => name },
  { heading: "Latest", cell: ({ summary }) => inShort(summary.latest) },
  { heading: "Min", cell: ({ summary }) => inShort(summary.least) },
  { heading: "Max", cell: ({ summary }) => inShort(summary.most) },
  { heading: "Mean", cell: ({ summary }) => inShort(summary.mean) },
  { heading: "Values", cell: ({ summary }) => summary.count.toLocaleString("en") },
];

/** Properties of {@link TopicChart}. */
interface TopicChartProps {
  readonly topic: string;
  readonly numbers: TopicNumbers;
  /** The stretch of time that is shown, Unix ms; null: from the first number, to the last one. */
  readonly from: number | null;
  readonly to: number | null;
}

/** Draws the numbers of a topic, with a table of their summary. */
export function TopicChart({ topic, numbers, from, to }: TopicChartProps) {
  const { times, series, hasMoreSeries, stepMs } = numbers;
  const range = rangeOf(times, from, to);
  return (
    <Stack gap="xs">
      <Suspense fallback={<Waiting />}>
        <Plot times={times} series={series} {...range} />
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
        columns={columns}
        rows={series}
        keyOf={({ name }) => name}
      />
    </Stack>
  );
}

/** The range in seconds; its length is positive. */
function rangeOf(times: readonly number[], from: number | null, to: number | null) {
  const range = {
    from: from === null ? (times.at(0) ?? 0) : from / 1_000,
    to: to === null ? (times.at(-1) ?? 0) : to / 1_000,
  };
  return range.from < range.to ? range : { from: range.from - 30, to: range.from + 30 };
}

function inShort(value: number): string {
  return value.toLocaleString("en", { maximumSignificantDigits: 6 });
}

/** Notes on a chart: how many records it is made of, and which are left out. */
export function chartNotes(numbers: ChartedNumbers | null, isReading: boolean, isLive: boolean): string {
  if (numbers === null) return "";
  const { records, isCut, hasMoreTopics } = numbers;
  const count = records === 1 ? "1 record" : `${records.toLocaleString("en")} records`;
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
