import { NativeSelect, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { EmptyState } from "../../components/empty-state.tsx";
import { Failure } from "../../components/failure.tsx";
import { Waiting } from "../../components/waiting.tsx";
import { ChartControls } from "./chart-controls.tsx";
import { type ChartView, type chartViewDefaults, zoomValue } from "./chart-view.ts";
import type { RecordChoice } from "./record-selection.ts";
import { chartNotes, TopicChart } from "./topic-chart.tsx";
import { useChartedNumbers } from "./use-charted-numbers.ts";
import { useWholeNumbers } from "./use-whole-numbers.ts";

/** Maximum of records in the chart of an open range. */
const mostOfOpenRange = 5_000;

/** Maximum of records in the chart of a range. */
const mostOfRange = 100_000;

/** What the chart shows. */
interface RecordChartProps {
  /** A value with a stable identity. */
  readonly selection: RecordChoice;
  readonly live: boolean;
  readonly view: ChartView;
  readonly onView: (changes: Partial<typeof chartViewDefaults>) => void;
}

/**
 * Draws the numbers of a selection of records, a topic at a time; while `live`, also those that are stored meanwhile.
 */
export function RecordChart({ selection, live, view, onView }: RecordChartProps) {
  const [chosen, setChosen] = useState("");
  const { numbers, from, to, isReading, error, stream, readAgain } = useChartedNumbers({
    selection,
    lastMs: null,
    mostRecords: selection.since === "" ? mostOfOpenRange : mostOfRange,
    live,
  });
  const topics = numbers?.topics ?? new Map();
  const topic = topics.has(chosen) ? chosen : ([...topics.keys()][0] ?? "");
  const read = numbers?.topics.get(topic);
  const zoomed = view.zoom;
  const earliest = (read?.times[0] ?? 0) * 1_000;
  // A zoom into what was read shows single records.
  const isCut = numbers?.isCut === true && selection.filter === "" && (zoomed?.from ?? 0) < earliest;
  const whole = useWholeNumbers({
    topic,
    names: read?.series.map(({ name }) => name) ?? [],
    from: zoomed?.from ?? from,
    to: zoomed?.to ?? to,
    enabled: isCut && read !== undefined,
  });
  const summed = isCut ? (whole.data ?? null) : null;
  const shown = summed ?? read;
  return (
    <Stack gap="sm">
      <Failure error={error} title="The records could not be read" onRetry={readAgain} />
      {numbers === null && error === null && <Waiting />}
      {numbers !== null && shown === undefined && !isReading && (
        <EmptyState title="No numbers">
          There are no numbers to draw: a chart shows payloads that are a number, or JSON with numbers in it.
        </EmptyState>
      )}
      {numbers !== null && shown !== undefined && (
        <>
          <NativeSelect
            label="Topic"
            w="fit-content"
            maw="100%"
            value={topic}
            data={[...topics.keys()]}
            onChange={(event) => setChosen(event.currentTarget.value)}
          />
          <ChartControls view={view} onChange={onView} />
          <TopicChart
            topic={topic}
            numbers={shown}
            from={summed?.from ?? from}
            to={to ?? (summed === null ? null : whole.dataUpdatedAt)}
            view={view}
            onZoom={(zoom) => onView({ zoom: zoomValue(zoom) })}
          />
        </>
      )}
      <Text size="sm" c="dimmed">
        {summed === null
          ? chartNotes(numbers, isReading, live && stream === "live")
          : "All records of the range, each in the mean of its stretch of time."}
      </Text>
    </Stack>
  );
}
