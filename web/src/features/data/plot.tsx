import { useComputedColorScheme } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { useEffect, useEffectEvent, useRef, useState } from "react";
import UPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { phoneQuery } from "../../components/phone.ts";
import type { ChartFormat } from "./chart-format.ts";
import type { ChartRange, ChartView } from "./chart-view.ts";
import styles from "./plot.module.css";
import { type DrawnSeries, drawnData } from "./plot-data.ts";
import { drawHeld, drawLines, noLimits, type PlotLimits, withLines } from "./plot-limits.ts";
import { isDashed, markOf, type PlacedSeries } from "./series-sizes.ts";

/** Heights in pixels: of a chart alone, and of one of several or on a phone. */
const heights = { alone: 300, small: 176 } as const;

/** Height below which a plot that fills its place has no room, in pixels. */
const leastHeight = 80;

/** Maximum of lines with their ranges; more of these would hide each other. */
const mostRanges = 4;

/** Maximum of points that are drawn; lines alone suffice for more of them. */
const mostPoints = 60;

/** The series of `tokens.css`, which a canvas cannot read. They differ also for colour-blind users. */
const colors = {
  light: ["#0f7b8c", "#5140c4", "#c27a34", "#b23a7a", "#2b90dc", "#3a444a"],
  dark: ["#4fb9ca", "#b3a5f5", "#e6ab76", "#ee7db6", "#bfdff6", "#78838b"],
} as const;

const font = "11px 'Inter Variable', sans-serif";

/** Opacity of a range from minimum to maximum, and of the area of a series alone, as hexadecimal digits. */
const [bandOpacity, areaOpacity] = ["29", "1c"];

/** Properties of {@link Plot}. */
interface PlotProps extends ChartRange {
  readonly series: readonly PlacedSeries[];
  readonly zone: ChartView["zone"];
  readonly format: ChartFormat;
  /** It is one of several charts. */
  readonly isSmall?: boolean;
  /** It is as high as the place that it is in. */
  readonly fills?: boolean;
  /** What rules want of its numbers. */
  readonly limits?: PlotLimits;
  /** Called with the range that is dragged across, and with null at a double click. */
  readonly onZoom: (zoom: ChartRange | null) => void;
  /** Called with the time at the cursor of all plots, Unix ms; null without one. */
  readonly onCursor?: (at: number | null) => void;
}

/** What is drawn again at each change. */
type Content = Pick<PlotProps, "series" | "from" | "to"> & { readonly limits: PlotLimits };

/** A chart on the page. */
interface Drawing {
  readonly draw: (content: Content) => void;
  readonly destroy: () => void;
}

/** What is read at the pointer. */
interface ReadOut {
  /** Pixels from the left edge of the chart. */
  readonly left: number;
  readonly isRight: boolean;
  readonly at: number;
  readonly rows: readonly {
    readonly name: string;
    readonly place: number;
    readonly text: string;
    readonly range: string;
  }[];
}

/** What a drawing is made with. */
interface Look extends Pick<PlotProps, "zone" | "format" | "onZoom"> {
  readonly names: readonly { readonly label: string; readonly place: number }[];
  readonly scheme: keyof typeof colors;
  /** Null for that of the place. */
  readonly height: number | null;
  readonly onCursor: (at: number | null, readOut: ReadOut | null) => void;
}

/** Lines over time; the caller shows the same data as text. The cursors of all plots of a page move together. */
export function Plot(props: PlotProps) {
  const { series, from, to, zone, format, isSmall = false, fills = false } = props;
  const { limits = noLimits, onZoom, onCursor } = props;
  const place = useRef<HTMLDivElement>(null);
  const drawing = useRef<Drawing | null>(null);
  const scheme = useComputedColorScheme("light");
  const isPhone = useMediaQuery(phoneQuery, false, { getInitialValueInEffect: false });
  const height = fills ? null : isSmall || isPhone ? heights.small : heights.alone;
  const [readOut, setReadOut] = useState<ReadOut | null>(null);
  const names = JSON.stringify(
    series.map((each) => ({ label: each.label ?? each.series.name, place: each.place })),
  );
  const zoom = useEffectEvent(onZoom);
  const point = useEffectEvent((at: number | null, read: ReadOut | null) => {
    setReadOut(read);
    onCursor?.(at);
  });

  useEffect(() => {
    if (place.current === null) return;
    const created = createDrawing(place.current, {
      names: JSON.parse(names),
      scheme,
      zone,
      format,
      height,
      onZoom: (range) => zoom(range),
      onCursor: (at, read) => point(at, read),
    });
    drawing.current = created;
    return () => created.destroy();
  }, [names, scheme, zone, format, height]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: another drawing is empty
  useEffect(() => {
    drawing.current?.draw({ series, from, to, limits });
  }, [series, from, to, limits, names, scheme, zone, format, height]);

  return (
    <div className={styles.plot} data-fills={fills || undefined} aria-hidden="true">
      <div ref={place} style={{ height: height ?? "100%" }} />
      {readOut !== null && (
        <div
          className={styles.readOut}
          data-right={readOut.isRight || undefined}
          style={{ left: readOut.left }}
        >
          <p>{format.time(readOut.at)}</p>
          {readOut.rows.map(({ name, place, text, range }) => (
            <p key={name}>
              <i style={{ background: markOf(place) }} />
              <span>{name}</span>
              <b>{text}</b>
              {range !== "" && <small>{range}</small>}
            </p>
          ))}
        </div>
      )}
    </div>
  );
}

function createDrawing(parent: HTMLElement, look: Look): Drawing {
  const { names, scheme, zone, format, height, onZoom, onCursor } = look;
  const stroke = scheme === "dark" ? "#88939b" : "#626c74";
  const grid = { stroke: scheme === "dark" ? "#1c2125" : "#eef0f1", width: 1 };
  const axis = { stroke, ticks: { show: false }, font };
  const colorOf = (place: number) => colors[scheme][place % colors[scheme].length] ?? stroke;
  const shown = { from: 0, to: 1, limits: noLimits };
  let drawn: readonly DrawnSeries[] = [];
  const canvas = document.createElement("canvas").getContext("2d");
  const widthOf = (text: string) => {
    if (canvas === null) return text.length * 7;
    canvas.font = font;
    return Math.max(...text.split("\n").map((line) => canvas.measureText(line).width));
  };
  const labels = (seconds: readonly number[], step: number) =>
    format.axis(
      seconds.map((each) => each * 1_000),
      step * 1_000,
    );

  const size = () => ({
    width: parent.clientWidth,
    height: height ?? Math.max(leastHeight, parent.clientHeight),
  });
  const plot = new UPlot(
    {
      ...size(),
      // Half of the last label is right of the chart.
      padding: [10, () => widthOf(labels([shown.from], (shown.to - shown.from) / 10)[0] ?? "") / 2, 0, 0],
      legend: { show: false },
      ...(zone === "UTC" && {
        tzDate: (seconds: number) => UPlot.tzDate(new Date(seconds * 1_000), "Etc/UTC"),
      }),
      cursor: {
        sync: { key: "plots", scales: ["x", null] },
        drag: { setScale: false },
        y: false,
        points: { size: 7 },
        bind: {
          dblclick: () => () => {
            onZoom(null);
            return null;
          },
        },
      },
      hooks: {
        drawClear: [(self) => drawHeld(self, shown.limits, scheme)],
        draw: [(self) => drawLines(self, shown.limits, scheme, font)],
        setSelect: [
          (self) => {
            const { left, width } = self.select;
            if (width === 0) return;
            const [from, to] = [left, left + width].map((x) => Math.round(self.posToVal(x, "x") * 1_000));
            self.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
            if (from !== undefined && to !== undefined && from < to) onZoom({ from, to });
          },
        ],
        setCursor: [
          (self) => {
            const { left = -1 } = self.cursor;
            if (left < 0) return onCursor(null, null);
            const at = self.posToVal(left, "x") * 1_000;
            onCursor(at, self.over.matches(":hover") ? readAt(self, left, at) : null);
          },
        ],
      },
      scales: {
        x: { range: () => [shown.from, shown.to] },
        y: {
          range(_self, least, most) {
            if (least == null || most == null) return [null, null];
            const [low, high] = withLines(shown.limits.lines, least, most);
            return UPlot.rangeNum(low, high, 0.1, true);
          },
        },
      },
      axes: [
        {
          ...axis,
          grid: { show: false },
          size: 36,
          gap: 6,
          // The width of a label in the locale of the page, with room to the next one.
          space: (_self, _axis, from, to, pixels) =>
            widthOf(labels([from], (to - from) / Math.max(1, pixels / 80))[0] ?? "") + 24,
          values: (_self, splits, _axis, _space, step) => labels(splits, step),
        },
        {
          ...axis,
          grid,
          gap: 8,
          space: height === heights.alone ? 48 : 32,
          size: (_self, texts) => Math.max(40, ...(texts ?? []).map((text) => widthOf(text) + 14)),
          values: (_self, splits, _axis, _space, step) => format.numbers(splits, step),
        },
      ],
      series: [
        {},
        ...names.flatMap(({ label, place }): UPlot.Series[] => {
          const color = colorOf(place);
          const bound = { stroke: "transparent", width: 0, points: { show: false } };
          return [
            {
              label,
              stroke: color,
              width: 1.5,
              ...(isDashed(place) && { dash: [4, 3] }),
              ...(names.length === 1 && { fill: `${color}${areaOpacity}` }),
              points: {
                show: (_plot: UPlot, _series: number, first: number, last: number) =>
                  last - first < mostPoints,
              },
            },
            { ...bound, label: `${label} most` },
            { ...bound, label: `${label} least` },
          ];
        }),
      ],
      bands: (names.length > mostRanges ? [] : names).map(({ place }, nth) => ({
        series: [nth * 3 + 2, nth * 3 + 3],
        fill: `${colorOf(place)}${bandOpacity}`,
      })),
    },
    [[], ...names.flatMap(() => [[], [], []])],
    parent,
  );

  function readAt(self: UPlot, left: number, at: number): ReadOut | null {
    const rows = drawn.flatMap(({ at: read }, nth) => {
      const point = read(at);
      const { label = "", place = 0 } = names[nth] ?? {};
      if (point === null) return [];
      const { least, most } = point;
      return {
        name: label,
        place,
        text: format.mean(point),
        range: least === most ? "" : `${format.number(least)} to ${format.number(most)}`,
      };
    });
    const isRight = left > self.over.clientWidth / 2;
    return rows.length === 0 ? null : { left: self.over.offsetLeft + left, isRight, at, rows };
  }

  const resized = new ResizeObserver(() => plot.setSize(size()));
  resized.observe(parent);
  return {
    draw({ series, from, to, limits }) {
      Object.assign(shown, { from: from / 1_000, to: to / 1_000, limits });
      const data = drawnData(series);
      drawn = data.series;
      plot.setData([
        [...data.times],
        ...data.series.flatMap(({ means, most, least }) => [[...means], [...most], [...least]]),
      ]);
    },
    destroy() {
      resized.disconnect();
      plot.destroy();
    },
  };
}
