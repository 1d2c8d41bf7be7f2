import { numberFormat } from "./locale.ts";

const whole = { maximumFractionDigits: 0 };
const tenths = { maximumFractionDigits: 1 };
const hundredths = { maximumFractionDigits: 2 };
const exact = { maximumSignificantDigits: 6 };

/** A number in the current locale, with a minus that has the width of a digit. */
function text(value: number, options: Intl.NumberFormatOptions): string {
  return numberFormat(options).format(value).replace("-", "−");
}

/** A rate per second: with a decimal below 100, and never 0 for a positive rate. */
export function rateText(perSecond: number): string {
  if (perSecond > 0 && perSecond < 0.05) return `<${text(0.1, tenths)}`;
  return text(perSecond, perSecond < 100 ? tenths : whole);
}

/** A duration in milliseconds, or in seconds from ten on. */
export function durationText(ms: number): string {
  if (ms > 0 && ms < 0.005) return `<${text(0.01, hundredths)} ms`;
  if (ms >= 10_000) return `${text(ms / 1_000, tenths)} s`;
  return `${text(ms, ms < 10 ? hundredths : ms < 100 ? tenths : whole)} ms`;
}

/** A number of things. */
export function countText(count: number): string {
  return text(count, whole);
}

/** A measured value, with at most six significant digits. */
export function valueText(value: number): string {
  return text(value, exact);
}

/** A share of 0 to 1 in percent, with a decimal below ten: "4.9 %". */
export function shareText(share: number): string {
  return `${text(share * 100, share < 0.1 ? tenths : whole)} %`;
}

const byteUnits = ["bytes", "KB", "MB", "GB", "TB"];

/** A size in bytes, as KB, MB, … of 1,000. */
export function bytesText(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1_000 && unit < byteUnits.length - 1) {
    value /= 1_000;
    unit++;
  }
  return `${text(value, value < 100 && unit > 0 ? tenths : whole)} ${byteUnits[unit]}`;
}
