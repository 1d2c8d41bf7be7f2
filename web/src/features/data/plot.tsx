import { useComputedColorScheme } from "@mantine/core";
import { useEffect, useRef } from "react";
import UPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { TopicNumbers } from "./topic-numbers.ts";

const height = 260;

/** Maximum of points that are drawn; lines alone suffice for more of them. */
const mostPoints = 60;

/** Colours that differ also for colour-blind users, for each theme. */
const colors = {
  light: ["#0f6c7c", "#b5530a", "#6a3fa0", "#2b7a2b", "#b3261e", "#1c5fb8", "#7a5c00", "#a02a75"],
  dark: ["#79bac7", "#ffb074", "#c3a5f0", "#8fd68f", "#ff9d96", "#8fbcff", "#e6c64d", "#f39ad0"],
} as const;

/** Properties of {@link Plot}. */
interface PlotProps extends Pick<TopicNumbers, "times" | "series"> {
  /** The stretch of time that is shown, in seconds since 1970. */
  readonly from: number;
  readonly to: number;
}

/** A chart on the page. */
interface Drawing {
  readonly draw: (content: PlotProps) => void;
  readonly destroy: () => void;
}

/**
 * Lines over time; the caller shows the same data as text. Dragging zooms, a double click resets, and the cursors of
 * all plots of a page move together.
 */
export function Plot({ times, series, from, to }: PlotProps) {
  const place = useRef<HTMLDivElement>(null);
  const drawing = useRef<Drawing | null>(null);
  const scheme = useComputedColorScheme("light");
  const names = JSON.stringify(series.map(({ name }) => name));

  useEffect(() => {
    if (place.current === null) return;
    const created = createDrawing(place.current, JSON.parse(names) as string[], scheme);
    drawing.current = created;
    return () => created.destroy();
  }, [names, scheme]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: another drawing is empty
  useEffect(() => {
    drawing.current?.draw({ times, series, from, to });
  }, [times, series, from, to, names, scheme]);

  return <div ref={place} aria-hidden="true" />;
}

function createDrawing(parent: HTMLElement, names: readonly string[], scheme: keyof typeof colors): Drawing {
  const stroke = scheme === "dark" ? "#c9cdd2" : "#495057";
  const grid = { stroke: scheme === "dark" ? "#3b4047" : "#e3e6e9", width: 1 };
  const axis = { stroke, grid, ticks: grid };
  const whole = { from: 0, to: 1 };
  let zoomed = false;

  /** The library asks for the times of the first and the last mark when nothing was chosen. */
  function rangeOf({ data: [times] }: UPlot, min: number, max: number): [number, number] {
    const [first, last] = [times.at(0), times.at(-1)];
    zoomed = first !== undefined && !(min === first && (max === last || times.length === 1));
    return zoomed ? [min, max] : [whole.from, whole.to];
  }

  const plot = new UPlot(
    {
      width: parent.clientWidth,
      height,
      cursor: { sync: { key: "plots", scales: ["x", null] } },
      scales: { x: { range: rangeOf } },
      axes: [axis, { ...axis, size: 64 }],
      series: [
        {},
        ...names.map((label, index) => ({
          label,
          stroke: colors[scheme][index % colors[scheme].length] ?? stroke,
          width: 1.5,
          spanGaps: true,
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
      Object.assign(whole, { from, to });
      const { min, max } = plot.scales.x ?? {};
      const data: UPlot.AlignedData = [[...times], ...series.map(({ values }) => [...values])];
      if (!zoomed || min === undefined || max === undefined) plot.setData(data);
      else {
        plot.batch(() => {
          plot.setData(data, false);
          plot.setScale("x", { min, max });
        });
      }
    },
    destroy() {
      resized.disconnect();
      plot.destroy();
    },
  };
}
