import type { DataRecord } from "@devmesh/contracts/model/data-record";
import { describe, expect, test } from "@jest/globals";
import { mostSeries, numbersByTopic, numbersOf, summaryOf } from "../src/data/numeric-series.ts";

const record = (message: string, changes: Partial<DataRecord> = {}): DataRecord => ({
  id: 1,
  timestamp: "2026-03-01T00:00:00.000Z",
  device_id: "boiler",
  topic: "db/boiler/t",
  message,
  ...changes,
});
const found = (message: string) => Object.fromEntries(numbersOf(record(message)));

describe("the numbers of payloads", () => {
  test("are plain ones and the members of JSON", () => {
    expect(found(" 21.5\n")).toEqual({ value: 21.5 });
    expect(found("-1e3")).toEqual({ value: -1000 });
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

  test("are told apart by topic, in the order of time, with gaps where a record lacks one", () => {
    const topics = numbersByTopic([
      record('{"b":3}', { timestamp: "2026-03-01T00:00:02.000Z" }),
      record('{"a":1,"b":2}'),
      record("on", { topic: "db/boiler/state" }),
      record("7", { topic: "db/boiler/a" }),
    ]);
    expect([...topics.keys()]).toEqual(["db/boiler/a", "db/boiler/t"]);
    const start = Date.parse("2026-03-01T00:00:00.000Z") / 1_000;
    expect(topics.get("db/boiler/t")).toEqual({
      times: [start, start + 2],
      series: [
        { name: "a", values: [1, null] },
        { name: "b", values: [2, 3] },
      ],
    });
  });

  test("are cut to as many series as can be told apart", () => {
    const many = Object.fromEntries(Array.from({ length: 30 }, (_, at) => [`m${at}`, at]));
    expect(numbersByTopic([record(JSON.stringify(many))]).get("db/boiler/t")?.series).toHaveLength(
      mostSeries,
    );
  });

  test("are summed up in words", () => {
    expect(summaryOf({ name: "a", values: [1, null, 5, 3] })).toEqual({
      name: "a",
      count: 3,
      latest: 3,
      least: 1,
      most: 5,
      mean: 3,
    });
  });
});
