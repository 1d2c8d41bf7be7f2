import { useComputedColorScheme } from "@mantine/core";
import { useEffect, useEffectEvent, useRef } from "react";
import UPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { ChartFormat } from "./chart-format.ts";
import type { ChartRange, ChartView } from "./chart-view.ts";
import type { PlacedSeries } from "./series-sizes.ts";

const height = 260;

/** Maximum of points that are drawn; lines alone suffice for more of them. */
const mostPoints = 60;

/** The series of `tokens.css`, which a canvas cannot read. They differ also for colour-blind users. */
const colors = {
  light: ["#0f7b8c", "#5140c4", "#c27a34", "#b23a7a", "#2b90dc", "#3a444a"],
  dark: ["#4fb9ca", "#b3a5f5", "#e6ab76", "#ee7db6", "#bfdff6", "#78838b"],
} as const;

/** Properties of {@link Plot}. */
interface PlotProps extends ChartRange {
  /** Seconds since 1970, ascending. */
  readonly times: readonly number[];
  readonly series: readonly PlacedSeries[];
  readonly zone: ChartView["zone"];
  readonly format: ChartFormat;
  /** Called with the range that is dragged across, and with null at a double click. */
  readonly onZoom: (zoom: ChartRange | null) => void;
}

/** What is drawn again at each change. */
type Content = Pick<PlotProps, "times" | "series" | "from" | "to">;

/** A chart on the page. */
interface Drawing {
  readonly draw: (content: Content) => void;
  readonly destroy: () => void;
}

/** What a drawing is made with. */
interface Look extends Pick<PlotProps, "zone" | "format" | "onZoom"> {
  readonly names: readonly { readonly label: string; readonly place: number }[];
  readonly scheme: keyof typeof colors;
}

/** Lines over time; the caller shows the same data as text. The cursors of all plots of a page move together. */
export function Plot({ times, series, from, to, zone, format, onZoom }: PlotProps) {
  const place = useRef<HTMLDivElement>(null);
  const drawing = useRef<Drawing | null>(null);
  const scheme = useComputedColorScheme("light");
  const names = JSON.stringify(series.map((each) => ({ label: each.series.name, place: each.place })));
  const zoom = useEffectEvent(onZoom);

  useEffect(() => {
    if (place.current === null) return;
    const created = createDrawing(place.current, {
      names: JSON.parse(names),
      scheme,
      zone,
      format,
      onZoom: (range) => zoom(range),
    });
    drawing.current = created;
    return () => created.destroy();
  }, [names, scheme, zone, format]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: another drawing is empty
  useEffect(() => {
    drawing.current?.draw({ times, series, from, to });
  }, [times, series, from, to, names, scheme, zone, format]);

  return <div ref={place} aria-hidden="true" />;
}

function createDrawing(parent: HTMLElement, { names, scheme, zone, format, onZoom }: Look): Drawing {
  const stroke = scheme === "dark" ? "#88939b" : "#626c74";
  const grid = { stroke: scheme === "dark" ? "#1c2125" : "#eef0f1", width: 1 };
  const axis = { stroke, grid, ticks: { show: false }, font: "11px 'Inter Variable', sans-serif" };
  const shown = { from: 0, to: 1 };
  const numberText = (value: number | null) => (value === null ? "–" : format.number(value));

  const plot = new UPlot(
    {
      width: parent.clientWidth,
      height,
      ...(zone === "UTC" && {
        tzDate: (seconds: number) => UPlot.tzDate(new Date(seconds * 1_000), "Etc/UTC"),
      }),
      cursor: {
        sync: { key: "plots", scales: ["x", null] },
        drag: { setScale: false },
        bind: {
          dblclick: () => () => {
            onZoom(null);
            return null;
          },
        },
      },
      hooks: {
        setSelect: [
          (self) => {
            const { left, width } = self.select;
            if (width === 0) return;
            const [from, to] = [left, left + width].map((x) => Math.round(self.posToVal(x, "x") * 1_000));
            self.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
            if (from !== undefined && to !== undefined && from < to) onZoom({ from, to });
          },
        ],
      },
      scales: { x: { range: () => [shown.from, shown.to] } },
      axes: [
        {
          ...axis,
          values: (_self, splits, _axis, _space, step) =>
            format.axis(
              splits.map((seconds) => seconds * 1_000),
              step * 1_000,
            ),
        },
        { ...axis, size: 64, values: (_self, splits) => splits.map(format.number) },
      ],
      series: [
        {
          label: "Time",
          value: (_self, seconds: number | null) => (seconds === null ? "–" : format.time(seconds * 1_000)),
        },
        ...names.map(({ label, place }) => ({
          label,
          stroke: colors[scheme][place % colors[scheme].length] ?? stroke,
          width: 1.5,
          spanGaps: true,
          value: (_self: UPlot, value: number | null) => numberText(value),
          points: {
            show: (_plot: UPlot, _series: number, first: number, last: number) => last - first < mostPoints,
          },
        })),
      ],
    },
    [[], ...names.map(() => [])],
    parent,
  );
  const resized = new ResizeObserver(() => plot.setSize({ width: parent.clientWidth, height }));
  resized.observe(parent);
  return {
    draw({ times, series, from, to }) {
      Object.assign(shown, { from: from / 1_000, to: to / 1_000 });
      plot.setData([[...times], ...series.map(({ series: { values } }) => [...values])]);
    },
    destroy() {
      resized.disconnect();
      plot.destroy();
    },
  };
}
