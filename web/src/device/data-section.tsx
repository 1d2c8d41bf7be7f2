import { Anchor, Button, Group, Stack, Text, Title } from "@mantine/core";
import { useMemo, useState } from "react";
import { Link, useSearchParams } from "wouter";
import { chartNotes } from "../data/chart-notes.ts";
import { TopicChart } from "../data/topic-chart.tsx";
import { useChartedNumbers } from "../data/use-charted-numbers.ts";
import { mqttPublishSnippet } from "../devices/connection-snippets.ts";
import { useBroker } from "../devices/use-broker.ts";
import { Failure } from "../elements/failure.tsx";
import { Snippet } from "../elements/snippet.tsx";
import { Waiting } from "../elements/waiting.tsx";
import type { SectionProps } from "./section.ts";
import { asBetween, lastRanges, rangeIn, withRange } from "./time-range.ts";
import { TimeRangeControl } from "./time-range-control.tsx";

/** Most records that the charts are made of. */
const mostRecords = 100_000;

/** Charts that are shown until more are asked for. */
const fewCharts = 8;

/** The numbers that the device publishes, a chart for each topic, live. */
export function DataSection({ device: { id } }: SectionProps) {
  const [query, setQuery] = useSearchParams();
  const range = useMemo(() => rangeIn(query), [query]);
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
  const topics = [...(numbers?.topics ?? [])];
  const recordsQuery = withRange(new URLSearchParams({ device: id }), asBetween(range, Date.now()));
  return (
    <Stack>
      <Group justify="space-between" align="end">
        <TimeRangeControl
          range={range}
          onChange={(changed) => setQuery((before) => withRange(before, changed), { replace: true })}
        />
        <Text size="sm" c="dimmed">
          {chartNotes(numbers, isReading, live && stream === "live")}{" "}
          <Anchor component={Link} href={`/data?${recordsQuery}`} underline="always">
            Records
          </Anchor>
        </Text>
      </Group>
      {error !== null && <Failure error={error} title="The records could not be read" onRetry={readAgain} />}
      {numbers === null && error === null && <Waiting />}
      {numbers !== null && topics.length === 0 && !isReading && (
        <NoNumbers id={id} records={numbers.records} />
      )}
      {topics.slice(0, all ? topics.length : fewCharts).map(([topic, shown]) => (
        <section key={topic} aria-label={topic}>
          <Title order={2} size="h5" mb={4}>
            {topic.replace(`db/${id}/`, "")}
          </Title>
          <TopicChart topic={topic} numbers={shown} from={from} to={to} />
        </section>
      ))}
      {topics.length > fewCharts && !all && (
        <Button variant="default" onClick={() => setAll(true)}>
          Show all {topics.length} topics
        </Button>
      )}
    </Stack>
  );
}

/** Says what to do, as there is nothing to draw. */
function NoNumbers({ id, records }: { readonly id: string; readonly records: number }) {
  const broker = useBroker();
  return (
    <Stack gap="xs">
      <Text>
        {records === 0
          ? "The device has published nothing in this time."
          : "The device has published in this time, but no numbers."}{" "}
        A number, or JSON with numbers in it, sent to a topic below db/{id}/ is drawn here as soon as it is
        stored.
      </Text>
      <Snippet label="Publish a value" text={mqttPublishSnippet({ id, token: "$TOKEN", ...broker })} />
      <Text size="sm" c="dimmed">
        $TOKEN is the device's token: it stands among its{" "}
        <Anchor component={Link} href={`/devices/${id}/credentials`} underline="always">
          credentials
        </Anchor>
        .
      </Text>
    </Stack>
  );
}
