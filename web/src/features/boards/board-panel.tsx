import type { BoardPanel } from "@devmesh/contracts/model/board";
import { printConditionText } from "@devmesh/contracts/model/condition-text";
import { lengthOf } from "@devmesh/contracts/model/duration";
import { type ReactNode, Suspense, useMemo } from "react";
import { Link, useLocation } from "wouter";
import { Failure } from "../../components/failure.tsx";
import { lazyView } from "../../components/lazy-view.ts";
import { countText, valueText } from "../../components/number-text.ts";
import { Sparkline } from "../../components/sparkline.tsx";
import { Waiting } from "../../components/waiting.tsx";
import { chartFormat } from "../data/chart-format.ts";
import { zoomValue } from "../data/chart-view.ts";
import {
  type ChosenDevice,
  deviceLabel,
  placeDevices,
  unitOf,
  useChosenDevices,
} from "../data/device-choice.ts";
import { markOf } from "../data/series-sizes.ts";
import { useSeries } from "../data/use-series.ts";
import styles from "./board-panel.module.css";
import { askedOfChart, askedOfValue, chartNumbers, panelValue } from "./panel-numbers.ts";
import { panelSubject, panelTitle } from "./panel-words.ts";

const Plot = lazyView(async () => (await import("../data/plot.tsx")).Plot);

/** Lines of a chart that are named in sight. */
const mostNames = 6;

const noDevices: readonly ChosenDevice[] = [];

/** Properties of {@link Panel}. */
interface PanelProps {
  readonly panel: BoardPanel;
  /** In place of the panel's range; empty for that. */
  readonly range: string;
  /** Controls at the end of the header. */
  readonly controls: ReactNode;
}

/** Numbers of devices on a board: a chart or a value. */
export function Panel({ panel: saved, range, controls }: PanelProps) {
  const panel = useMemo(() => (range === "" ? saved : { ...saved, range }), [saved, range]);
  const { kind, fn, topic, pointer, where, device_ids } = panel;
  const { data, error, refetch } = useSeries({
    where,
    device_ids,
    topic,
    pointer,
    range: panel.range,
    fn: kind === "chart" ? askedOfChart(fn) : askedOfValue(fn),
  });
  const devices = useChosenDevices(panel) ?? noDevices;
  const Content = kind === "chart" ? ChartContent : ValueContent;
  return (
    <>
      <div className={styles.header}>
        <h2 className={styles.title}>
          <Link href={chartAddress(panel)}>{panelTitle(panel)}</Link>
        </h2>
        <div className={styles.controls}>{controls}</div>
      </div>
      {error !== null && data === undefined ? (
        <div className={styles.failure}>
          <Failure error={error} title="Its numbers could not be read" onRetry={() => void refetch()} />
        </div>
      ) : data === undefined ? (
        <div className={styles.failure}>
          <Waiting rows={2} />
        </div>
      ) : (
        <Content panel={panel} data={data} devices={devices} />
      )}
    </>
  );
}

interface ContentProps {
  readonly panel: BoardPanel;
  readonly data: NonNullable<ReturnType<typeof useSeries>["data"]>;
  readonly devices: readonly ChosenDevice[];
}

/** A line for each device, with its newest value. */
function ChartContent({ panel, data, devices }: ContentProps) {
  const [, navigate] = useLocation();
  const { fn } = panel;
  const unit = fn === "count" ? undefined : unitOf(devices, panel);
  const numbers = useMemo(() => chartNumbers(data, fn), [data, fn]);
  const format = useMemo(() => chartFormat("local"), []);
  const placed = useMemo(() => placeDevices(numbers.series, devices, unit), [numbers, devices, unit]);
  if (placed.length === 0) return <p className={styles.none}>No number of it in this time.</p>;
  return (
    <div className={styles.chart}>
      <ul className={styles.names}>
        {placed.map(({ series, place, label }) => {
          const last = series.steps.at(-1);
          const text = last === undefined ? "" : `${valueText(last.latest.value)} ${unit ?? ""}`.trimEnd();
          return (
            <li key={series.name} data-hidden={place >= mostNames || undefined}>
              <i style={{ background: markOf(place) }} />
              <span>
                {label} <b>{text}</b>
              </span>
            </li>
          );
        })}
        {placed.length > mostNames && (
          <li aria-hidden="true">and {countText(placed.length - mostNames)} more</li>
        )}
        <li className={styles.subject}>{panelSubject(panel)}</li>
      </ul>
      <Suspense fallback={<Waiting rows={3} />}>
        <Plot
          series={placed}
          from={data.from}
          to={data.to}
          zone="local"
          format={format}
          fills
          onZoom={(zoom) => zoom !== null && navigate(chartAddress(panel, zoom))}
        />
      </Suspense>
    </div>
  );
}

/** One number of all devices, with its course. */
function ValueContent({ panel, data, devices }: ContentProps) {
  const { fn } = panel;
  const { value, range, device_id, times, course, ...found } = useMemo(
    () => panelValue(data, fn),
    [data, fn],
  );
  const { devices: count } = found;
  const format = useMemo(() => chartFormat("local"), []);
  const unit = fn === "count" ? undefined : unitOf(devices, panel);
  if (value === null) return <p className={styles.none}>No number of it in this time.</p>;
  const [only] = data.series;
  const of = device_id ?? (count === 1 && data.series.length === 1 ? (only?.device_id ?? null) : null);
  return (
    <div className={styles.value}>
      <p className={styles.number}>
        {range === null ? valueText(value) : format.mean({ mean: value, ...range })}
        {unit !== undefined && <span> {unit}</span>}
      </p>
      <p className={styles.note}>
        {panelSubject(panel)} · {of === null ? devicesText(count) : deviceLabel(devices, of)}
      </p>
      <div className={styles.course}>
        <Sparkline times={times} values={course} from={data.to - lengthOf(panel.range)} to={data.to} />
      </div>
    </div>
  );
}

function devicesText(count: number): string {
  return count === 1 ? "1 device" : `${countText(count)} devices`;
}

/** The chart of the same devices alone. */
function chartAddress(
  { where, device_ids, topic, pointer, range }: BoardPanel,
  zoom: Parameters<typeof zoomValue>[0] = null,
): string {
  return `/data/devices?${new URLSearchParams({
    ...(device_ids === undefined ? { where: printConditionText(where ?? {}) } : { ids: device_ids.join() }),
    topic,
    pointer,
    range,
    ...(zoom !== null && { zoom: zoomValue(zoom) }),
  })}`;
}
