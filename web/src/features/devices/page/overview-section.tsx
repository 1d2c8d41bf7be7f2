import type { Notification } from "@devmesh/contracts/model/notification";
import { Stack } from "@mantine/core";
import { useMemo, useState } from "react";
import { Card } from "../../../components/card.tsx";
import { Columns } from "../../../components/columns.tsx";
import { EmptyState } from "../../../components/empty-state.tsx";
import { Failure } from "../../../components/failure.tsx";
import { useAddress } from "../../../components/use-address.ts";
import { Waiting } from "../../../components/waiting.tsx";
import { DeviceAlerts } from "../../alerts/firing-card.tsx";
import { chartRanges, isChartRangeName } from "../../data/chart-ranges.ts";
import { chartViewDefaults, chartViewIn, zoomValue } from "../../data/chart-view.ts";
import type { ChartedNumbers } from "../../data/charted-records.ts";
import { useChartedNumbers } from "../../data/use-charted-numbers.ts";
import { useWholeNumbers } from "../../data/use-whole-numbers.ts";
import { ActivityCard } from "./activity-card.tsx";
import { CallCard } from "./call-card.tsx";
import { ConnectionCard } from "./connection-card.tsx";
import type { DeviceValue } from "./device-values.ts";
import { emptyLog, withFrames } from "./event-log.ts";
import { firstValue } from "./first-value.ts";
import type { SectionProps } from "./section.ts";
import { ShadowCard } from "./shadow-card.tsx";
import { beginOf, longestOfRecords } from "./time-range.ts";
import { useDeviceLimits } from "./use-device-limits.ts";
import { useDeviceValues } from "./use-device-values.ts";
import { ValueChart } from "./value-chart.tsx";
import { ValueTiles } from "./value-tiles.tsx";

/** Maximum of records in the chart. */
const mostRecords = 20_000;

const defaults = { value: "", range: "1h", ...chartViewDefaults };

/** A device at a glance: its values, their course, what differs, what happened; a call. */
export function OverviewSection({ device }: SectionProps) {
  const { id } = device;
  const [{ value, range: named, ...viewed }, change] = useAddress(defaults);
  const range = isChartRangeName(named) ? named : "1h";
  const lastMs = chartRanges[range].ms;
  const view = chartViewIn(viewed);
  const selection = useMemo(() => ({ filter: "", device: id, since: "", until: "" }), [id]);
  const { values, error, readAgain, take } = useDeviceValues(device);
  const [log, setLog] = useState(emptyLog);
  const charted = useChartedNumbers({
    selection,
    lastMs: Math.min(lastMs, longestOfRecords),
    mostRecords,
    live: true,
    onFrames(frames) {
      take(frames);
      const events = frames.filter(({ name }) => name !== "data");
      if (events.length > 0) setLog((before) => withFrames(before, id, events));
    },
  });
  const frames = useMemo<readonly Notification[]>(
    () => log.entries.map(({ frame }) => frame).reverse(),
    [log],
  );
  const to = charted.to ?? 0;
  const from = beginOf(charted.from ?? 0, device.created_at, to);
  // Chosen once, so that the chart stays while values come.
  const [first, setFirst] = useState<string | null>(null);
  const numeric = values?.filter((each) => typeof each.value === "number") ?? [];
  const chosen =
    numeric.find(({ key }) => key === value) ??
    numeric.find(({ key }) => key === first) ??
    (charted.numbers === null ? undefined : firstValue(numeric, charted.numbers));
  if (chosen !== undefined && first === null) setFirst(chosen.key);
  const [topic = "", pointer = ""] = chosen?.key.split("#") ?? [];
  const limits = useDeviceLimits(device, topic, pointer);
  const { series = "" } = chosen ?? {};
  const earliest = earliestOf(charted.numbers, chosen);
  // A zoom into records that were read shows those, each by itself and live.
  const isSummed =
    chosen !== undefined &&
    charted.numbers !== null &&
    (lastMs > longestOfRecords || charted.numbers.isCut) &&
    (view.zoom === null || view.zoom.from < earliest);
  const whole = useWholeNumbers({
    topic: chosen?.topic ?? "",
    names: [series],
    from: view.zoom?.from ?? null,
    to: view.zoom?.to ?? null,
    lastMs: view.zoom === null ? lastMs : null,
    enabled: isSummed,
  });
  const summed = isSummed ? (whole.data ?? null) : null;
  return (
    <Stack gap={14}>
      <DeviceAlerts id={id} />
      <Failure error={error} title="The values could not be read" onRetry={readAgain} />
      {values === undefined && error === null && <Waiting rows={2} />}
      {values !== undefined && values.length > 0 && (
        <ValueTiles
          values={values}
          isOld={!device.online}
          numbers={charted.numbers}
          from={from}
          to={to}
          chosen={chosen?.key}
          onChoose={(key) => change({ value: key })}
        />
      )}
      <Columns>
        <div>
          {numeric.length > 0 && (
            <Failure
              error={charted.error ?? (isSummed ? whole.error : null)}
              title="The records could not be read"
              onRetry={charted.error === null ? () => void whole.refetch() : charted.readAgain}
            />
          )}
          {numeric.length > 0 && chosen === undefined && (
            <Card>
              <Waiting rows={8} />
            </Card>
          )}
          {chosen !== undefined && (
            <ValueChart
              value={chosen}
              limits={limits}
              numbers={summed ?? charted.numbers?.topics.get(chosen.topic)}
              isReading={charted.numbers === null || (isSummed && whole.isPending)}
              from={summed?.from ?? from}
              to={summed?.to ?? to}
              range={range}
              onRange={(changed) => change({ range: changed, zoom: "" })}
              view={view}
              onZoom={(zoom) => change({ zoom: zoomValue(zoom) })}
            />
          )}
          {values?.length === 0 && (
            <Card>
              <EmptyState title="No values yet">
                What it publishes below <code>db/{id}/</code> is shown here.
              </EmptyState>
            </Card>
          )}
          <ActivityCard device={device} frames={frames} />
        </div>
        <div>
          <ShadowCard device={device} />
          <CallCard device={device} />
          <ConnectionCard device={device} />
        </div>
      </Columns>
    </Stack>
  );
}

/** The time of the first number of a value that was read, Unix ms. */
function earliestOf(numbers: ChartedNumbers | null, value: DeviceValue | undefined): number {
  const [first] = (value && numbers?.topics.get(value.topic)?.times) ?? [];
  return first === undefined ? Number.POSITIVE_INFINITY : first * 1_000;
}
