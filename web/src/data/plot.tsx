import { useComputedColorScheme } from "@mantine/core";
import { useEffect, useRef } from "react";
import UPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { TopicNumbers } from "./numeric-series.ts";

const height = 280;

/** Colours that differ also to those who see few of them, on the ground of each theme. */
const colors = {
  light: ["#0f6c7c", "#b5530a", "#6a3fa0", "#2b7a2b", "#b3261e", "#1c5fb8", "#7a5c00", "#a02a75"],
  dark: ["#79bac7", "#ffb074", "#c3a5f0", "#8fd68f", "#ff9d96", "#8fbcff", "#e6c64d", "#f39ad0"],
} as const;

/** Lines over time; what it shows is told in words by who draws it. A range is chosen by dragging, left by a double click. */
export function Plot({ times, series }: TopicNumbers) {
  const place = useRef<HTMLDivElement>(null);
  const scheme = useComputedColorScheme("light");
  useEffect(() => {
    const parent = place.current;
    if (parent === null) return;
    const stroke = scheme === "dark" ? "#c9cdd2" : "#495057";
    const grid = { stroke: scheme === "dark" ? "#3b4047" : "#e3e6e9", width: 1 };
    const axis = { stroke, grid, ticks: grid };
    const plot = new UPlot(
      {
        width: parent.clientWidth,
        height,
        axes: [axis, { ...axis, size: 64 }],
        series: [
          {},
          ...series.map(({ name }, index) => ({
            label: name,
            stroke: colors[scheme][index % colors[scheme].length] ?? stroke,
            width: 1.5,
            spanGaps: true,
            points: { show: times.length < 50 },
          })),
        ],
      },
      [[...times], ...series.map(({ values }) => [...values])],
      parent,
    );
    const resized = new ResizeObserver(() => plot.setSize({ width: parent.clientWidth, height }));
    resized.observe(parent);
    return () => {
      resized.disconnect();
      plot.destroy();
    };
  }, [times, series, scheme]);
  return <div ref={place} aria-hidden="true" />;
}
