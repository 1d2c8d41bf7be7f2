import { expect, test } from "@jest/globals";
import { drawnRows } from "../src/features/data/drawn-rows.ts";
import { spanNumbers } from "../src/features/data/span-numbers.ts";

test("what a chart draws is a line for each time, and empty where a series has no number", () => {
  const from = Date.parse("2026-03-01T00:00:00.000Z");
  const to = from + 2 * 3_600_000;
  const { series } = spanNumbers(
    "PT1H",
    [
      { name: "one", points: [["2026-03-01T00:00:00.000Z", 2, 4, 1, 3, 3]] },
      { name: "two", points: [["2026-03-01T01:00:00.000Z", 1, 5, 5, 5, 5]] },
    ],
    { from, to },
  );
  expect(drawnRows(series.map((each, place) => ({ series: each, place })))).toEqual([
    ["time", "one mean", "one min", "one max", "two mean", "two min", "two max"],
    ["2026-03-01T00:30:00.000Z", "2", "1", "3", "", "", ""],
    ["2026-03-01T01:30:00.000Z", "", "", "", "5", "5", "5"],
  ]);
});
