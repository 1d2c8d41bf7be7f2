import type UPlot from "uplot";
import type { ChartRange } from "./chart-view.ts";

/** What rules want of the numbers of a chart. */
export interface PlotLimits {
  /** Numbers at which a rule fires, or ends where `ends` is true. */
  readonly lines: readonly { readonly value: number; readonly label: string; readonly ends?: true }[];
  /** Times for which a rule held. */
  readonly held: readonly ChartRange[];
}

export const noLimits: PlotLimits = { lines: [], held: [] };

/** `--bad` and `--text-3` of `tokens.css`, which a canvas cannot read. */
const colors = {
  light: { fires: "#b0241c", ends: "#626c74" },
  dark: { fires: "#ff928a", ends: "#88939b" },
} as const;

/** Opacity of a time for which a rule held, as hexadecimal digits. */
const heldOpacity = "1f";

/** The least and most of an axis with the lines that are near the numbers: one that is far away would flatten them. */
export function withLines(lines: PlotLimits["lines"], least: number, most: number): [number, number] {
  const reach = Math.max(most - least, Math.abs(most) / 10) * 2;
  const near = lines
    .map(({ value }) => value)
    .filter((value) => value > least - reach && value < most + reach);
  return [Math.min(least, ...near), Math.max(most, ...near)];
}

/** Draws the times below everything else. */
export function drawHeld(
  { ctx, bbox, valToPos }: UPlot,
  { held }: PlotLimits,
  scheme: keyof typeof colors,
): void {
  ctx.save();
  ctx.fillStyle = `${colors[scheme].fires}${heldOpacity}`;
  for (const { from, to } of held) {
    const start = Math.max(bbox.left, valToPos(from / 1_000, "x", true));
    const end = Math.min(bbox.left + bbox.width, valToPos(to / 1_000, "x", true));
    if (end > start) ctx.fillRect(start, bbox.top, Math.max(2, end - start), bbox.height);
  }
  ctx.restore();
}

/** Draws the lines above everything else, each with its label. */
export function drawLines(
  { ctx, bbox, valToPos }: UPlot,
  { lines }: PlotLimits,
  scheme: keyof typeof colors,
  font: string,
): void {
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.lineWidth = ratio;
  ctx.textAlign = "left";
  ctx.font = font.replace(/^\d+/, (size) => String(Number(size) * ratio));
  for (const { value, label, ends } of lines) {
    const y = Math.round(valToPos(value, "y", true));
    if (y < bbox.top || y > bbox.top + bbox.height) continue;
    const color = colors[scheme][ends ? "ends" : "fires"];
    ctx.strokeStyle = color;
    ctx.fillStyle = color;
    ctx.setLineDash(ends ? [ratio, 3 * ratio] : [4 * ratio, 3 * ratio]);
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
    // Below a line at the top, which has no room above it.
    const isHigh = y - bbox.top < 18 * ratio;
    ctx.textBaseline = isHigh || ends ? "top" : "bottom";
    ctx.fillText(label, bbox.left + 6 * ratio, y + (isHigh || ends ? 4 : -4) * ratio);
  }
  ctx.restore();
}
