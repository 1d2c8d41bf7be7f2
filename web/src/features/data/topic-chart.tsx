import { Stack, Text } from "@mantine/core";
import { Suspense } from "react";
import { type Column, DataTable } from "../../components/data-table.tsx";
import { lazyView } from "../../components/lazy-view.ts";
import { timeSpan } from "../../components/time-in-words.ts";
import { Waiting } from "../../components/waiting.tsx";
import { mostSeries, type TopicNumbers } from "./topic-numbers.ts";

const Plot = lazyView(async () => (await import("./plot.tsx")).Plot);

const columns: readonly Column<TopicNumbers["series"][number]>[] = [
  { heading: "Series", namesRow: true, cell: ({ name }) => name },
  { heading: "Latest", cell: ({ summary }) => inShort(summary.latest) },
  { heading: "Least", cell: ({ summary }) => inShort(summary.least) },
  { heading: "Most", cell: ({ summary }) => inShort(summary.most) },
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
          {stepMs !== null && `Drawn: the least and the most in every ${timeSpan(stepMs)}. `}
          {hasMoreSeries && `Only ${mostSeries} of its numbers are shown.`}
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
