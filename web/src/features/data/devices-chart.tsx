import { parseConditionText } from "@devmesh/contracts/model/condition-text";
import { Button, Group, NativeSelect, SegmentedControl, Stack, Text } from "@mantine/core";
import { Download } from "lucide-react";
import { useMemo } from "react";
import { Link } from "wouter";
import { saveCsv } from "../../components/csv.ts";
import { EmptyState } from "../../components/empty-state.tsx";
import { Failure } from "../../components/failure.tsx";
import { countText } from "../../components/number-text.ts";
import { Page } from "../../components/page.tsx";
import { useAddress } from "../../components/use-address.ts";
import { Waiting } from "../../components/waiting.tsx";
import { ChartControls } from "./chart-controls.tsx";
import { durationChoices, isChartDuration } from "./chart-ranges.ts";
import { chartViewDefaults, chartViewIn, zoomValue } from "./chart-view.ts";
import {
  type ChosenDevice,
  type DeviceChoice,
  keyOf,
  placeDevices,
  placeName,
  type SeriesPlace,
  unitOf,
  useChosenDevices,
  useSeriesOfDevices,
} from "./device-choice.ts";
import { drawnRows } from "./drawn-rows.ts";
import { askedOfSpans, spanNumbers } from "./span-numbers.ts";
import { SeriesChart } from "./topic-chart.tsx";
import { useSeries } from "./use-series.ts";

/** The chart as values of the address: the devices by their ids or by a condition, the number, the range. */
const defaults = { ids: "", where: "", topic: "", pointer: "", range: "P1D", ...chartViewDefaults };

const noDevices: readonly ChosenDevice[] = [];

/** One number of several devices: a line for each, over up to two years. */
export function DevicesChart() {
  const [values, change] = useAddress(defaults);
  const { ids, where } = values;
  const choice = useMemo(() => choiceIn(ids, where), [ids, where]);
  const devices = useChosenDevices(choice);
  const offered = useSeriesOfDevices(devices);
  const [first] = offered ?? [];
  const place = values.topic === "" ? first : { topic: values.topic, pointer: values.pointer };
  const list = where === "" && ids !== "" ? "/devices" : `/devices?${new URLSearchParams({ where })}`;
  return (
    <Page title="Chart of devices" part="Data" above={<Link href={list}>Devices</Link>}>
      {place === undefined ? (
        offered === undefined ? (
          <Waiting />
        ) : (
          <EmptyState title="No numbers">
            None of the devices has published a number, or JSON with numbers in it. A new one is listed within
            a minute.
          </EmptyState>
        )
      ) : (
        <PlacedChart
          choice={choice}
          devices={devices ?? noDevices}
          offered={offered ?? []}
          place={place}
          values={values}
          change={change}
        />
      )}
    </Page>
  );
}

interface PlacedChartProps {
  readonly choice: DeviceChoice;
  readonly devices: readonly ChosenDevice[];
  readonly offered: readonly SeriesPlace[];
  readonly place: SeriesPlace;
  readonly values: typeof defaults;
  readonly change: ReturnType<typeof useAddress<typeof defaults>>[1];
}

function PlacedChart({ choice, devices, offered, place, values, change }: PlacedChartProps) {
  const view = chartViewIn(values);
  const range = isChartDuration(values.range) ? values.range : defaults.range;
  const { topic, pointer } = place;
  const { data, error, refetch } = useSeries({
    ...choice,
    topic,
    pointer,
    fn: askedOfSpans,
    range,
    zoom: view.zoom,
  });
  const numbers = useMemo(
    () =>
      data &&
      spanNumbers(
        data.every,
        data.series.map(({ device_id: name, points }) => ({ name, points })),
        data,
      ),
    [data],
  );
  const unit = unitOf(devices, place);
  const placed = useMemo(() => placeDevices(numbers?.series ?? [], devices, unit), [numbers, devices, unit]);
  const name = placeName(place);
  const places = offered.some((one) => keyOf(one) === keyOf(place)) ? offered : [place, ...offered];
  return (
    <Stack gap="sm">
      <Group gap="sm" align="end">
        <NativeSelect
          label="Number"
          w="fit-content"
          maw="100%"
          value={keyOf(place)}
          data={places.map((one) => ({ value: keyOf(one), label: placeName(one) }))}
          onChange={({ currentTarget }) => {
            const chosen = places.find((one) => keyOf(one) === currentTarget.value);
            if (chosen !== undefined) change({ topic: chosen.topic, pointer: chosen.pointer });
          }}
        />
        <SegmentedControl
          aria-label="Time that is shown"
          value={range}
          onChange={(chosen) => change({ range: chosen, zoom: "" })}
          data={[...durationChoices]}
        />
        <Button
          size="xs"
          variant="default"
          leftSection={<Download size={14} />}
          disabled={placed.length === 0}
          onClick={() => saveCsv(`${name}.csv`, drawnRows(placed))}
        >
          CSV
        </Button>
      </Group>
      <ChartControls view={view} onChange={change} />
      <Failure error={error} title="The numbers could not be read" onRetry={() => void refetch()} />
      {data === undefined && error === null && <Waiting />}
      {data !== undefined && placed.length === 0 && (
        <EmptyState title="No number of it in this time">Choose a longer time, or another number.</EmptyState>
      )}
      {data !== undefined && numbers !== undefined && placed.length > 0 && (
        <>
          <SeriesChart
            label={name}
            groups={[placed]}
            range={view.zoom ?? data}
            zone={view.zone}
            stepMs={numbers.stepMs}
            hasMoreSeries={false}
            onZoom={(zoom) => change({ zoom: zoomValue(zoom) })}
          />
          {placed.length < data.series.length && (
            <Text size="sm" c="dimmed">
              {countText(data.series.length - placed.length)} of {countText(data.series.length)} devices have
              no number of it in this time.
            </Text>
          )}
        </>
      )}
    </Stack>
  );
}

/** The devices of an address. */
function choiceIn(ids: string, where: string): DeviceChoice {
  if (ids !== "") return { device_ids: ids.split(",") };
  const parsed = parseConditionText(where);
  return { where: "condition" in parsed ? parsed.condition : {} };
}
