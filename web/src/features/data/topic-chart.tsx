import type { Device } from "@devmesh/contracts/model/device";
import { valueLabelOf } from "@devmesh/contracts/model/value-labels";
import { Stack, Text } from "@mantine/core";
import { Suspense, useMemo, useState } from "react";
import { useApi } from "../../api/api-context.tsx";
import { queryKeys } from "../../api/query-keys.ts";
import { useReading } from "../../api/use-reading.ts";
import { type Column, DataTable } from "../../components/data-table.tsx";
import { lazyView } from "../../components/lazy-view.ts";
import { countText } from "../../components/number-text.ts";
import { timeSpan } from "../../components/time-in-words.ts";
import { Waiting } from "../../components/waiting.tsx";
import { type ChartFormat, chartFormat } from "./chart-format.ts";
import type { ChartRange, ChartView } from "./chart-view.ts";
import type { ChartedNumbers } from "./charted-records.ts";
import styles from "./plot.module.css";
import { pointAt, pointsOf } from "./plot-data.ts";
import { groupsByUnit, markOf, type PlacedSeries } from "./series-sizes.ts";
import { mostSeries, mostTopics, summaryOf, type TopicNumbers } from "./topic-numbers.ts";

const Plot = lazyView(async () => (await import("./plot.tsx")).Plot);

/** A row of the summary. */
interface SummarisedSeries {
  readonly placed: PlacedSeries;
  /** Null without a number in the range. */
  readonly summary: ReturnType<typeof summaryOf>;
}

/** The columns of the summary in the language of a chart. */
function columnsOf({ number, mean }: ChartFormat): readonly Column<SummarisedSeries>[] {
  const value = (placed: PlacedSeries, of: number | undefined) =>
    of !== undefined && withUnit(number(of), placed);
  return [
    { heading: "Series", namesRow: true, cell: ({ placed }) => nameOf(placed) },
    { heading: "Latest", cell: ({ placed, summary }) => value(placed, summary?.latest) },
    { heading: "Min", cell: ({ placed, summary }) => value(placed, summary?.least) },
    { heading: "Max", cell: ({ placed, summary }) => value(placed, summary?.most) },
    { heading: "Mean", cell: ({ placed, summary }) => summary !== null && withUnit(mean(summary), placed) },
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
  const tags = useTags(topic);
  const placed = useMemo(
    () => series.map((each, place) => ({ series: each, place, ...labelOf(tags, topic, each.name) })),
    [series, tags, topic],
  );
  const groups = useMemo(() => groupsByUnit(placed), [placed]);
  return (
    <SeriesChart
      label={topic}
      groups={groups}
      range={view.zoom ?? rangeOf(times, from, to)}
      zone={view.zone}
      stepMs={stepMs}
      hasMoreSeries={hasMoreSeries}
      onZoom={onZoom}
    />
  );
}

/** Properties of {@link SeriesChart}. */
interface SeriesChartProps extends Pick<TopicNumbers, "stepMs" | "hasMoreSeries"> {
  /** What the numbers are of. */
  readonly label: string;
  /** A chart each. */
  readonly groups: readonly (readonly PlacedSeries[])[];
  readonly range: ChartRange;
  readonly zone: ChartView["zone"];
  readonly onZoom: (zoom: ChartRange | null) => void;
}

/** Charts of series, with a table that sums up what is seen of them. */
export function SeriesChart(props: SeriesChartProps) {
  const { label, groups, range, zone, stepMs, hasMoreSeries, onZoom } = props;
  const format = useMemo(() => chartFormat(zone), [zone]);
  return (
    <Stack gap="xs">
      {groups.map((group) => (
        <GroupChart
          key={group.map(({ place }) => place).join()}
          group={group}
          isSmall={groups.length > 1}
          from={range.from}
          to={range.to}
          zone={zone}
          format={format}
          onZoom={onZoom}
        />
      ))}
      {(stepMs !== null || hasMoreSeries) && (
        <Text size="xs" c="dimmed">
          {stepMs !== null && `A point is the mean of ${timeSpan(stepMs)}, with its min and max around it. `}
          {hasMoreSeries && `Only ${mostSeries} series are shown.`}
        </Text>
      )}
      <DataTable
        label={`Numbers of ${label}`}
        minWidth={480}
        columns={columnsOf(format)}
        rows={groups
          .flat()
          .toSorted((one, other) => one.place - other.place)
          .map((each) => ({ placed: each, summary: summaryOf(each.series, range.from, range.to) }))}
        keyOf={(row) => row.placed.series.name}
      />
    </Stack>
  );
}

interface GroupChartProps extends ChartRange, Pick<SeriesChartProps, "onZoom"> {
  readonly group: readonly PlacedSeries[];
  readonly isSmall: boolean;
  readonly zone: ChartView["zone"];
  readonly format: ChartFormat;
}

/** A chart with the names of its series above it, each with its newest value, or that under the cursor. */
function GroupChart({ group, isSmall, from, to, zone, format, onZoom }: GroupChartProps) {
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const [cursor, setCursor] = useState<number | null>(null);
  const shown = useMemo(() => group.filter(({ series }) => !hidden.has(series.name)), [group, hidden]);
  const toggle = (name: string) =>
    setHidden((before) => {
      const after = new Set(before);
      if (!after.delete(name)) after.add(name);
      return after;
    });
  return (
    <div>
      <div className={styles.names}>
        {group.map(({ series, place, unit, label }) => {
          const point = pointAt(pointsOf(series), cursor ?? to);
          return (
            <button
              key={series.name}
              type="button"
              className={styles.name}
              aria-pressed={!hidden.has(series.name)}
              title="Show or hide"
              onClick={() => toggle(series.name)}
            >
              <i style={{ background: markOf(place) }} />
              {label ?? series.name}
              {point !== null && <b>{withUnit(format.mean(point), { unit })}</b>}
            </button>
          );
        })}
      </div>
      <Suspense fallback={<Waiting />}>
        <Plot
          series={shown}
          from={from}
          to={to}
          zone={zone}
          format={format}
          isSmall={isSmall}
          onZoom={onZoom}
          onCursor={setCursor}
        />
      </Suspense>
    </div>
  );
}

function withUnit(text: string, { unit = "" }: Pick<PlacedSeries, "unit">): string {
  return `${text} ${unit}`.trimEnd();
}

function nameOf({ label, series }: PlacedSeries): string {
  return label ?? series.name;
}

/** The tags of the device that published to a topic. */
function useTags(topic: string) {
  const api = useApi();
  const id = topic.split("/")[1] ?? "";
  const { data } = useReading({
    queryKey: queryKeys.device(id),
    queryFn: ({ signal }) => api.call("readDevice", { params: { id }, signal }),
    enabled: id !== "",
  });
  return data?.shadow.tags;
}

/** What people call a series, and its unit, by the tags of its device. */
function labelOf(tags: Device["shadow"]["tags"] | undefined, topic: string, name: string) {
  if (tags === undefined) return {};
  const below = topic.split("/").slice(2).join("/");
  const pointers = [...(name === "value" ? [""] : []), `/${name.replaceAll(".", "/")}`];
  for (const pointer of pointers) {
    const { unit, name: label } = valueLabelOf(tags, { topic: below, pointer });
    if (unit !== undefined || label !== undefined) return { unit, label };
  }
  return {};
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
