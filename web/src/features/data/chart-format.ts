import { currentLocale } from "../../components/locale.ts";
import type { ChartView } from "./chart-view.ts";
import type { SeriesPoint } from "./plot-data.ts";

/** Texts of a chart in the locale of the page. */
export interface ChartFormat {
  /** A time in full, Unix ms. */
  readonly time: (at: number) => string;
  /** Labels of an axis of time, Unix ms, that are `stepMs` apart: the first and each new day have the date below. */
  readonly axis: (times: readonly number[], stepMs: number) => string[];
  readonly number: (value: number) => string;
  /** A mean: with one decimal more than its least and greatest number have. */
  readonly mean: (of: Pick<SeriesPoint, "mean" | "least" | "most">) => string;
  /** Labels of an axis of numbers that are `step` apart: all with as many decimals as distinguish them. */
  readonly numbers: (values: readonly number[], step: number) => string[];
  /** Name of the time zone. */
  readonly zone: string;
}

/** The formats of a chart; `locales` is for tests. */
export function chartFormat(zone: ChartView["zone"], locales = currentLocale()): ChartFormat {
  const inZone = zone === "UTC" ? ({ timeZone: "UTC" } as const) : {};
  const dates = new Intl.DateTimeFormat(locales, { ...inZone, month: "short", day: "numeric" });
  const full = new Intl.DateTimeFormat(locales, { ...inZone, dateStyle: "medium", timeStyle: "medium" });
  const numbers = new Intl.NumberFormat(locales, { maximumSignificantDigits: significantDigits });
  return {
    time: (at) => full.format(at),
    axis(times, stepMs) {
      const clock = new Intl.DateTimeFormat(locales, { ...inZone, ...precisionOf(stepMs) });
      let day = "";
      return times.map((at) => {
        const date = dates.format(at);
        if (stepMs >= dayMs) return date;
        const isNew = date !== day;
        day = date;
        return isNew ? `${clock.format(at)}\n${date}` : clock.format(at);
      });
    },
    number: (value) => numbers.format(value),
    mean({ mean, least, most }) {
      if (least === most) return numbers.format(mean);
      const decimals = Math.min(mostDecimals, Math.max(decimalsOf(least), decimalsOf(most)) + 1);
      const rounded = Number(mean.toFixed(decimals));
      return numbers.format(rounded === 0 ? mean : rounded);
    },
    numbers(values, step) {
      let decimals = 0;
      while (decimals < mostDecimals && !isWhole(step * 10 ** decimals)) decimals++;
      const fixed = new Intl.NumberFormat(locales, {
        minimumFractionDigits: decimals,
        maximumFractionDigits: decimals,
      });
      return values.map((value) => fixed.format(value));
    },
    zone: full.resolvedOptions().timeZone,
  };
}

const dayMs = 86_400_000;
const mostDecimals = 12;
const significantDigits = 6;

/** Decimals of a number as a chart shows it. */
function decimalsOf(value: number): number {
  const [digits = "", exponent = "0"] = value.toPrecision(significantDigits).split("e");
  const written = (digits.split(".")[1] ?? "").replace(/0+$/, "").length;
  return Math.max(0, written - Number(exponent));
}

function isWhole(value: number): boolean {
  return Math.abs(value - Math.round(value)) < 1e-6;
}

/** Seconds, and parts of them, only where labels would be equal without. */
function precisionOf(stepMs: number): Intl.DateTimeFormatOptions {
  if (stepMs >= 1_000) return { timeStyle: stepMs >= 60_000 ? "short" : "medium" };
  return { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3 };
}
