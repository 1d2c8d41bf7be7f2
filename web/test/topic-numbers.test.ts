import type { DataRecord } from "@devmesh/contracts/model/data-record";
import { describe, expect, test } from "@jest/globals";
import { numbersOf } from "../src/features/data/payload-numbers.ts";
import { groupsBySize } from "../src/features/data/series-sizes.ts";
import {
  gatherNumbers,
  mostSeries,
  mostSteps,
  mostTopics,
  summaryOf,
} from "../src/features/data/topic-numbers.ts";
import { wholeSummary } from "./whole-summary.ts";

const start = Date.parse("2026-03-01T00:00:00.000Z");

function record(message: string, changes: Partial<DataRecord> = {}): DataRecord {
  return {
    id: 1,
    timestamp: new Date(start).toISOString(),
    device_id: "boiler",
    topic: "db/boiler/t",
    message,
    ...changes,
  };
}

/** The record with this id, so many milliseconds after the start. */
function valueAt(id: number, ms: number, value: number): DataRecord {
  return record(String(value), { id, timestamp: new Date(start + ms).toISOString() });
}

function topicOf(records: readonly DataRecord[]) {
  const numbers = gatherNumbers();
  numbers.add(records);
  return numbers.topics().get("db/boiler/t");
}

const found = (message: string) => Object.fromEntries(numbersOf(record(message)));

describe("the numbers of payloads", () => {
  test("are plain ones and the members of JSON", () => {
    expect(found(" 21.5\n")).toEqual({ value: 21.5 });
    expect(found("-1e3")).toEqual({ value: -1000 });
    expect(found('{"t":21.5,"h":40}')).toEqual({ t: 21.5, h: 40 });
    expect(found('{"air":{"celsius":20,"ok":true},"levels":[1,"x",3]}')).toEqual({
      "air.celsius": 20,
      "levels.0": 1,
      "levels.2": 3,
    });
  });

  test("are none in text, in what is broken, in what is no number and in what is not text", () => {
    for (const message of ["", "on", "{", '"5"', "null", "Infinity", "1e999", "0x10", "1 2"]) {
      expect(found(message)).toEqual({});
    }
    expect(numbersOf(record("1234", { encoding: "base64" })).size).toBe(0);
  });
});

describe("the numbers of topics", () => {
  test("are told apart by topic, in the order of time, with gaps where a record lacks one", () => {
    const numbers = gatherNumbers();
    numbers.add([
      record('{"b":3}', { id: 2, timestamp: new Date(start + 2_000).toISOString() }),
      record('{"a":1,"b":2}'),
      record("on", { topic: "db/boiler/state" }),
      record("7", { topic: "db/boiler/a" }),
    ]);
    const topics = numbers.topics();
    expect([...topics.keys()]).toEqual(["db/boiler/a", "db/boiler/t"]);
    expect(topics.get("db/boiler/t")).toMatchObject({
      times: [start / 1_000, start / 1_000 + 2],
      series: [
        { name: "b", values: [2, 3] },
        { name: "a", values: [1, null] },
      ],
      hasMoreSeries: false,
      stepMs: null,
    });
  });

  test("are summed up in words, in whatever order they came", () => {
    const records = [valueAt(3, 300, 3), valueAt(1, 100, 1), valueAt(2, 200, 5)];
    expect(wholeSummary(topicOf(records))).toEqual({ count: 3, latest: 3, least: 1, most: 5, mean: 3 });
    const [series] = topicOf(records)?.series ?? [];
    expect(series && summaryOf(series, start + 150, start + 300)).toEqual({
      count: 2,
      latest: 3,
      least: 3,
      most: 5,
      mean: 4,
    });
    expect(series && summaryOf(series, start + 301, start + 900)).toBeNull();
  });

  test("are cut to as many series and topics as can be told apart, and that is told", () => {
    const many = Object.fromEntries(Array.from({ length: 30 }, (_, at) => [`m${at}`, at]));
    const topic = topicOf([record(JSON.stringify(many))]);
    expect(topic?.series).toHaveLength(mostSeries);
    expect(topic?.hasMoreSeries).toBe(true);

    const numbers = gatherNumbers();
    numbers.add(Array.from({ length: mostTopics }, (_, at) => record("1", { topic: `db/boiler/${at}` })));
    expect(numbers.hasMoreTopics()).toBe(false);
    numbers.add([record("1", { topic: "db/boiler/another" })]);
    expect(numbers.topics().size).toBe(mostTopics);
    expect(numbers.hasMoreTopics()).toBe(true);
  });

  test("keep their extremes and their sums when they are too many to be held each", () => {
    const count = 50_000;
    const records = Array.from({ length: count }, (_, at) => valueAt(at + 1, at * 100, at % 1_000));
    const peak = valueAt(count + 1, 1_234_567, 9_999);
    const topic = topicOf([...records.reverse(), peak]);
    expect(topic?.times.length).toBeGreaterThan(mostSteps / 2);
    expect(topic?.times.length).toBeLessThanOrEqual(2 * mostSteps);
    expect(topic?.stepMs).toBeGreaterThan((count * 100) / mostSteps);
    expect(wholeSummary(topic)).toMatchObject({
      count: count + 1,
      least: 0,
      most: 9_999,
      latest: 9_999,
    });
    const peakAt = topic?.times.indexOf((start + 1_234_567) / 1_000) ?? -1;
    expect(topic?.series[0]?.values[peakAt]).toBe(9_999);
    expect(topic?.times).toEqual([...(topic?.times ?? [])].sort((one, other) => one - other));
  });

  test("are forgotten when they are too old, and make room for others", () => {
    const numbers = gatherNumbers();
    numbers.add([valueAt(1, 0, 1), valueAt(2, 5_000, 2), record("1", { topic: "db/boiler/old" })]);
    numbers.dropBefore(start + 1_000);
    const topics = numbers.topics();
    expect([...topics.keys()]).toEqual(["db/boiler/t"]);
    expect(topics.get("db/boiler/t")?.series[0]).toMatchObject({ values: [2] });
    expect(wholeSummary(topics.get("db/boiler/t"))).toMatchObject({ count: 1 });
  });

  test("are the same as before where nothing came", () => {
    const numbers = gatherNumbers();
    numbers.add([record("1"), record("1", { topic: "db/boiler/a" })]);
    const before = numbers.topics();
    numbers.add([record("2", { id: 2, topic: "db/boiler/a" })]);
    expect(numbers.topics().get("db/boiler/t")).toBe(before.get("db/boiler/t"));
    expect(numbers.topics().get("db/boiler/a")).not.toBe(before.get("db/boiler/a"));
  });
});

test("series of different size are drawn apart, each with the colour of its place", () => {
  const topic = topicOf([record('{"celsius":21,"hPa":1013,"off":0,"percent":55,"volt":-3.3}')]);
  const groups = groupsBySize((topic?.series ?? []).map((series, place) => ({ series, place }))).map(
    (group) => group.map(({ series: { name }, place }) => `${place} ${name}`),
  );
  expect(groups).toEqual([["1 hPa"], ["0 celsius", "3 percent"], ["2 off", "4 volt"]]);
  expect(groupsBySize([])).toEqual([]);
});
