import { lengthOf } from "@devmesh/contracts/model/duration";
import type { SeriesFunction } from "@devmesh/contracts/model/series";
import { askedOfSpans, spanNumbers } from "../data/span-numbers.ts";
import type { TopicNumbers } from "../data/topic-numbers.ts";
import type { SeriesOfDevices } from "../data/use-series.ts";

/** What the chart of a function asks of each span; the mean is drawn with its range. */
export function askedOfChart(fn: SeriesFunction): readonly SeriesFunction[] {
  return fn === "avg" ? askedOfSpans : [fn];
}

/** What the value of a function asks of each span. */
export function askedOfValue(fn: SeriesFunction): readonly SeriesFunction[] {
  return fn === "avg" ? ["sum", "count", "min", "max"] : [fn];
}

/** The numbers of a chart, a series for each device. */
export function chartNumbers({ every, series, from, to }: SeriesOfDevices, fn: SeriesFunction): TopicNumbers {
  const named = series.map(({ device_id: name, points }) => ({
    name,
    points:
      fn === "avg"
        ? points
        : points.map(([begin = null, value = null]) => [
            begin,
            value === null ? 0 : 1,
            value,
            value,
            value,
            value,
          ]),
  }));
  return spanNumbers(every, named, { from, to });
}

/** One number of devices over a range, and its course. */
export interface PanelValue {
  /** Null without a number in the range. */
  readonly value: number | null;
  /** Of a mean: the least and the greatest number that it is of; null else. */
  readonly range: { readonly least: number; readonly most: number } | null;
  /** The device that has it, of a least or a greatest one; null else. */
  readonly device_id: string | null;
  /** Number of devices with numbers. */
  readonly devices: number;
  /** Middles of the spans, Unix ms, and the value of each. */
  readonly times: readonly number[];
  readonly course: readonly number[];
}

/** A span of a device: its function, and the number of its values, which only a mean needs. */
interface SpanValue {
  readonly value: number;
  readonly count: number;
}

/** The value of a panel out of what {@link askedOfValue} asks for (api.md, Boards). */
export function panelValue({ every, series }: SeriesOfDevices, fn: SeriesFunction): PanelValue {
  const stepMs = lengthOf(every);
  const spans = new Map<number, SpanValue[]>();
  const bounds: number[] = [];
  const ofDevices: (SpanValue & { readonly device_id: string })[] = [];
  for (const { device_id, points } of series) {
    const own: SpanValue[] = [];
    for (const [begin, value, count = 1, ...ends] of points) {
      if (typeof value !== "number" || typeof count !== "number") continue;
      bounds.push(...ends.map(Number));
      const span = { value, count };
      const at = Date.parse(String(begin)) + stepMs / 2;
      own.push(span);
      spans.set(at, [...(spans.get(at) ?? []), span]);
    }
    const total = own.length === 0 ? null : inTime(own, fn);
    if (total !== null) ofDevices.push({ ...total, device_id });
  }
  const times = [...spans.keys()].sort((one, other) => one - other);
  const value = ofDevices.length === 0 ? null : ofAll(ofDevices, fn);
  const holder = fn === "min" || fn === "max" ? ofDevices.find((each) => each.value === value) : undefined;
  return {
    value,
    range: bounds.length === 0 ? null : { least: least(bounds), most: greatest(bounds) },
    device_id: holder?.device_id ?? null,
    devices: ofDevices.length,
    times,
    course: times.map((at) => ofAll(spans.get(at) ?? [], fn)),
  };
}

/** The spans of one device as one. */
function inTime(spans: readonly SpanValue[], fn: SeriesFunction): SpanValue | null {
  const one = fn === "first" ? spans.at(0) : fn === "last" ? spans.at(-1) : undefined;
  if (one !== undefined) return one;
  const count = sumOf(spans.map((span) => span.count));
  // A mean is made of sums.
  return { value: fn === "avg" ? sumOf(spans.map((span) => span.value)) : ofAll(spans, fn), count };
}

/** The function of values that are from one time, or of one device. */
function ofAll(spans: readonly SpanValue[], fn: SeriesFunction): number {
  const values = spans.map(({ value }) => value);
  switch (fn) {
    case "min":
      return least(values);
    case "max":
      return greatest(values);
    case "sum":
    case "count":
      return sumOf(values);
    case "first":
    case "last":
      return sumOf(values) / values.length;
    case "avg":
      return sumOf(values) / sumOf(spans.map(({ count }) => count));
  }
}

function least(values: readonly number[]): number {
  return values.reduce((one, other) => Math.min(one, other));
}

function greatest(values: readonly number[]): number {
  return values.reduce((one, other) => Math.max(one, other));
}

function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}
