import { describe, expect, test } from "@jest/globals";
import { spanNumbers } from "../src/features/data/span-numbers.ts";
import { summaryOf } from "../src/features/data/topic-numbers.ts";

const hour = 3_600_000;
const start = Date.parse("2026-03-01T00:00:00.000Z");
const at = (hours: number) => new Date(start + hours * hour).toISOString();

describe("numbers in spans of time", () => {
  const numbers = spanNumbers(
    "PT1H",
    [
      {
        name: "celsius",
        points: [
          [at(0), 3, 30, 5, 20, 6],
          [at(2), 1, 4, 4, 4, 4],
        ],
      },
      { name: "bar", points: [[at(1), 2, 3, 1, 2, 2]] },
    ],
    { from: start, to: start + 2.25 * hour },
  );

  test("are in the middle of each, or at the end of the range, and null where a series has none", () => {
    expect(numbers.times.map((seconds) => (seconds * 1_000 - start) / hour)).toEqual([0.5, 1.5, 2.25]);
    expect(numbers.series.map(({ name, values }) => [name, values])).toEqual([
      ["celsius", [10, null, 4]],
      ["bar", [null, 1.5, null]],
    ]);
    expect(numbers.stepMs).toBe(hour);
  });

  test("are summed up as records are", () => {
    const [celsius] = numbers.series;
    if (celsius === undefined) throw new Error("no series");
    expect(summaryOf(celsius, start, start + 2.25 * hour)).toEqual({
      count: 4,
      latest: 4,
      least: 4,
      most: 20,
      mean: 8.5,
    });
  });
});
