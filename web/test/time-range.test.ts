import { describe, expect, test } from "@jest/globals";
import {
  asBetween,
  beginOf,
  rangeDefaults,
  rangeIn,
  type TimeRange,
  valuesOf,
} from "../src/features/devices/page/time-range.ts";

const now = Date.parse("2026-03-01T12:00:00.000Z");

describe("the range in an address", () => {
  test("is found again as it was put there", () => {
    const ranges: TimeRange[] = [
      { kind: "last", range: "15m" },
      { kind: "last", range: "1h" },
      { kind: "between", since: "2026-03-01T00:00:00.000Z", until: "" },
      { kind: "between", since: "2026-03-01T00:00:00.000Z", until: "2026-03-02T00:00:00.000Z" },
    ];
    for (const range of ranges) expect(rangeIn(valuesOf(range))).toEqual(range);
  });

  test("is the last hour where there is none, or none that can be understood", () => {
    for (const range of ["", "9y", "constructor"]) {
      expect(rangeIn({ ...rangeDefaults, range })).toEqual({ kind: "last", range: "1h" });
    }
    expect(rangeIn({ ...rangeDefaults, range: "custom", since: "yesterday" })).toEqual({
      kind: "between",
      since: "",
      until: "",
    });
  });

  test("stays where it is when it is to be changed at will", () => {
    expect(asBetween({ kind: "last", range: "24h" }, now)).toEqual({
      kind: "between",
      since: "2026-02-28T12:00:00.000Z",
      until: "",
    });
  });
});

test("a chart begins with its range, or with the device that is younger, and shows a minute at least", () => {
  const [minute, hour] = [60_000, 3_600_000];
  const created = (before: number) => new Date(now - before).toISOString();
  expect(beginOf(now - hour, created(2 * hour), now)).toBe(now - hour);
  expect(beginOf(now - hour, created(3 * minute), now)).toBe(now - 3 * minute);
  expect(beginOf(now - hour, created(5_000), now)).toBe(now - minute);
});
