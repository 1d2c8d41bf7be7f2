import { Stack, Table, Text } from "@mantine/core";
import { lazy, Suspense } from "react";
import { timeSpan } from "../../components/time-in-words.ts";
import { Waiting } from "../../components/waiting.tsx";
import { mostSeries, type TopicNumbers } from "./topic-numbers.ts";

const Plot = lazy(() => import("./plot.tsx").then((module) => ({ default: module.Plot })));

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
      <Table.ScrollContainer minWidth={480}>
        <Table aria-label={`Numbers of ${topic}`}>
          <Table.Thead>
            <Table.Tr>
              {["Series", "Latest", "Least", "Most", "Mean", "Values"].map((label) => (
                <Table.Th key={label} scope="col">
                  {label}
                </Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {series.map(({ name, summary: { latest, least, most, mean, count } }) => (
              <Table.Tr key={name}>
                <Table.Th scope="row">{name}</Table.Th>
                <Table.Td>{inShort(latest)}</Table.Td>
                <Table.Td>{inShort(least)}</Table.Td>
                <Table.Td>{inShort(most)}</Table.Td>
                <Table.Td>{inShort(mean)}</Table.Td>
                <Table.Td>{count.toLocaleString("en")}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
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
