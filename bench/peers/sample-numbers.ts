/** When the first number was stored, in Unix milliseconds. */
export const seriesStart = Date.parse("2026-01-01T00:00:00.000Z");

/** The number of a second, in eighths: sums are exact in any order. */
export function numberAt(nth: number): number {
  return 20 + (nth % 1_000) / 8;
}

/** {@link numberAt} in SQL. */
export const numberInSql = "20 + (nth % 1000) / 8.0";
