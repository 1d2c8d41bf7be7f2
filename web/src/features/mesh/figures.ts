const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const tenths = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const hundredths = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });

/** A rate per second: with a decimal below 100, and never 0 for a positive rate. */
export function rateText(perSecond: number): string {
  if (perSecond > 0 && perSecond < 0.05) return "<0.1";
  return (perSecond < 100 ? tenths : whole).format(perSecond);
}

/** A duration in milliseconds, or in seconds from ten on. */
export function durationText(ms: number): string {
  if (ms > 0 && ms < 0.005) return "<0.01 ms";
  if (ms >= 10_000) return `${tenths.format(ms / 1_000)} s`;
  return `${(ms < 10 ? hundredths : ms < 100 ? tenths : whole).format(ms)} ms`;
}

/** A number of things. */
export function countText(count: number): string {
  return whole.format(count);
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
  return `${(value < 100 && unit > 0 ? tenths : whole).format(value)} ${byteUnits[unit]}`;
}
