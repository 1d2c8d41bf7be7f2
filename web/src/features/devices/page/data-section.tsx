import { deviceTopics } from "@devmesh/contracts/mqtt";
import { Anchor, Button, Group, SegmentedControl, Stack, Text, Title } from "@mantine/core";
import { useMemo, useState } from "react";
import { Link } from "wouter";
import { Snippet } from "../../../components/code-block.tsx";
import { Failure } from "../../../components/failure.tsx";
import { countText } from "../../../components/number-text.ts";
import { TimeInputs } from "../../../components/time-inputs.tsx";
import { useAddress } from "../../../components/use-address.ts";
import { Waiting } from "../../../components/waiting.tsx";
import { ChartControls } from "../../data/chart-controls.tsx";
import { chartViewDefaults, chartViewIn, zoomValue } from "../../data/chart-view.ts";
import { chartNotes, TopicChart } from "../../data/topic-chart.tsx";
import { useChartedNumbers } from "../../data/use-charted-numbers.ts";
import { publishCommand } from "../connect/clients.ts";
import { useBroker } from "../connect/use-broker.ts";
import type { SectionProps } from "./section.ts";
import {
  asBetween,
  beginOf,
  isLastRange,
  lastRanges,
  rangeDefaults,
  rangeIn,
  valuesOf,
} from "./time-range.ts";

/** Maximum of records in the charts. */
const mostRecords = 100_000;

const defaults = { ...rangeDefaults, ...chartViewDefaults };

/** Charts that are shown until more are asked for. */
const fewCharts = 8;

/** The numbers that the device publishes, a chart for each topic, live. */
export function DataSection({ device: { id, created_at } }: SectionProps) {
  const [values, change] = useAddress(defaults);
  const view = chartViewIn(values);
  const range = rangeIn(values);
  const [all, setAll] = useState(false);
  const between = range.kind === "between" ? range : null;
  const { since, until } = between ?? { since: "", until: "" };
  const selection = useMemo(() => ({ filter: "", device: id, since, until }), [id, since, until]);
  const live = until === "" || Date.parse(until) > Date.now();
  const { numbers, from, to, isReading, error, stream, readAgain } = useChartedNumbers({
    selection,
    lastMs: range.kind === "last" ? lastRanges[range.range].ms : null,
    mostRecords,
    live,
  });
  const begin = range.kind === "last" && from !== null && to !== null ? beginOf(from, created_at, to) : from;
  const topics = [...(numbers?.topics ?? [])];
  const fixed = asBetween(range, Date.now());
  const recordsQuery = new URLSearchParams({ device: id, since: fixed.since, until: fixed.until });
  return (
    <Stack>
      <Group justify="space-between">
        <Group gap="sm">
          <SegmentedControl
            aria-label="Time that is shown"
            value={range.kind === "last" ? range.range : "custom"}
            onChange={(chosen) =>
              change({
                ...valuesOf(
                  isLastRange(chosen) ? { kind: "last", range: chosen } : asBetween(range, Date.now()),
                ),
                zoom: "",
              })
            }
            data={[
              ...Object.entries(lastRanges).map(([value, { label }]) => ({ value, label })),
              { value: "custom", label: "Custom" },
            ]}
          />
          {between !== null && (
            <TimeInputs range={between} onChange={(bounds) => change({ ...bounds, zoom: "" })} />
          )}
          {topics.length > 0 && <ChartControls view={view} onChange={change} />}
        </Group>
        <Text size="sm" c="dimmed">
          {chartNotes(numbers, isReading, live && stream === "live")}{" "}
          <Anchor component={Link} href={`/data?${recordsQuery}`} underline="always">
            Records
          </Anchor>
        </Text>
      </Group>
      <Failure error={error} title="The records could not be read" onRetry={readAgain} />
      {numbers === null && error === null && <Waiting />}
      {numbers !== null && topics.length === 0 && !isReading && (
        <NoNumbers id={id} records={numbers.records} />
      )}
      {topics.slice(0, all ? topics.length : fewCharts).map(([topic, shown]) => (
        <section key={topic} aria-label={topic}>
          <Title order={2} size="h5" mb={4}>
            {topic.replace(deviceTopics.record(id, ""), "")}
          </Title>
          <TopicChart
            topic={topic}
            numbers={shown}
            from={begin}
            to={to}
            view={view}
            onZoom={(zoom) => change({ zoom: zoomValue(zoom) })}
          />
        </section>
      ))}
      {topics.length > fewCharts && !all && (
        <Button variant="default" onClick={() => setAll(true)}>
          Show all {countText(topics.length)} topics
        </Button>
      )}
    </Stack>
  );
}

/** Explains how to publish numbers. */
function NoNumbers({ id, records }: { readonly id: string; readonly records: number }) {
  const broker = useBroker();
  return (
    <Stack gap="xs">
      <Text>
        {records === 0
          ? "The device has published nothing in this time."
          : "The device has published in this time, but no numbers."}{" "}
        A number, or JSON with numbers in it, sent to a topic below {deviceTopics.record(id, "")} is drawn
        here as soon as it is stored.
      </Text>
      {broker !== null && (
        <Snippet label="Publish a value" text={publishCommand({ id, token: "$TOKEN", ...broker })} />
      )}
      <Text size="sm" c="dimmed">
        $TOKEN is the device's token: see its{" "}
        <Anchor component={Link} href={`/devices/${id}/credentials`} underline="always">
          credentials
        </Anchor>
        .
      </Text>
    </Stack>
  );
}
