import type { SeriesFunction } from "@devmesh/contracts/model/series";
import { describe, expect, test } from "@jest/globals";
import {
  askedOfChart,
  askedOfValue,
  chartNumbers,
  panelValue,
} from "../src/features/boards/panel-numbers.ts";
import type { SeriesOfDevices } from "../src/features/data/use-series.ts";

const hour = 3_600_000;
const from = Date.parse("2026-03-01T00:00:00.000Z");
const begin = (hours: number) => new Date(from + hours * hour).toISOString();

/** The values of two devices by hours; the second one has none in the first hour. */
const stored: Readonly<Record<string, readonly (readonly number[])[]>> = {
  one: [[1, 3], [5]],
  two: [[], [10, 20, 30]],
};

const functions: Readonly<Record<SeriesFunction, (values: readonly number[]) => number>> = {
  count: (values) => values.length,
  sum: (values) => values.reduce((sum, value) => sum + value, 0),
  min: (values) => Math.min(...values),
  max: (values) => Math.max(...values),
  first: (values) => values[0] ?? Number.NaN,
  last: (values) => values.at(-1) ?? Number.NaN,
  avg: (values) => functions.sum(values) / values.length,
};

/** What the server answers. */
function answerOf(fn: readonly SeriesFunction[], devices = stored): SeriesOfDevices {
  return {
    every: "PT1H",
    from,
    to: from + 2 * hour,
    series: Object.entries(devices).map(([device_id, hours]) => ({
      device_id,
      topic: "temp",
      pointer: "",
      points: hours.flatMap((values, nth) =>
        values.length === 0 ? [] : [[begin(nth), ...fn.map((each) => functions[each](values))]],
      ),
    })),
  };
}

describe("the value of a panel", () => {
  const shownBy = (fn: SeriesFunction) => panelValue(answerOf(askedOfValue(fn)), fn);

  test("is that of all numbers of all devices", () => {
    expect(shownBy("avg")).toMatchObject({ value: 69 / 6, range: { least: 1, most: 30 } });
    expect(shownBy("sum").value).toBe(69);
    expect(shownBy("count").value).toBe(6);
  });

  test("names the device that has the least or the greatest", () => {
    expect(shownBy("min")).toMatchObject({ value: 1, device_id: "one" });
    expect(shownBy("max")).toMatchObject({ value: 30, device_id: "two" });
  });

  test("is the mean of the first or the last ones of each device", () => {
    expect(shownBy("first").value).toBe((1 + 10) / 2);
    expect(shownBy("last").value).toBe((5 + 30) / 2);
  });

  test("has a course by spans", () => {
    const { times, course, devices } = shownBy("avg");
    expect(times.map((at) => (at - from) / hour)).toEqual([0.5, 1.5]);
    expect(course).toEqual([2, 65 / 4]);
    expect(devices).toBe(2);
  });

  test("is none without numbers", () => {
    expect(panelValue(answerOf(["max"], { one: [[], []] }), "max")).toMatchObject({
      value: null,
      devices: 0,
    });
  });
});

describe("the chart of a panel", () => {
  test("has the mean of each span with its range, a series for each device", () => {
    const { series } = chartNumbers(answerOf(askedOfChart("avg")), "avg");
    expect(series.map(({ name, values }) => [name, values])).toEqual([
      ["one", [2, 5]],
      ["two", [null, 20]],
    ]);
    expect(series[0]?.steps[0]).toMatchObject({ count: 2, least: { value: 1 }, most: { value: 3 } });
  });

  test("has the value of another function", () => {
    const { series } = chartNumbers(answerOf(askedOfChart("sum")), "sum");
    expect(series.map(({ values }) => values)).toEqual([
      [4, 5],
      [null, 60],
    ]);
  });
});
