import { expect, test } from "@jest/globals";
import { EventCounts } from "../src/evaluation/event-counts.ts";

/** What begins and ends with events of a device at these times, and then up to an end. */
function turnsOf(times: readonly number[], end: number, { count = 3, withinMs = 10 } = {}): string[] {
  const counts = new EventCounts({ count, withinMs });
  const turns = [...times.flatMap((at) => counts.add({ device_id: "pump", at })), ...counts.expire(end)];
  return turns.map(({ at, holds }) => `${holds ? "begins" : "ends"} ${at}`);
}

test("it begins with the event that makes them enough, to the millisecond", () => {
  expect(turnsOf([0, 5, 11], 11)).toEqual([]);
  expect(turnsOf([0, 5, 10], 10)).toEqual(["begins 10"]);
});

test("it lasts until too few are left, and then may begin again", () => {
  expect(turnsOf([0, 5, 10], 11)).toEqual(["begins 10", "ends 10"]);
  expect(turnsOf([0, 1, 2], 10)).toEqual(["begins 2"]);
  expect(turnsOf([0, 1, 2, 9], 11)).toEqual(["begins 2"]);
  expect(turnsOf([0, 1, 2, 9], 12)).toEqual(["begins 2", "ends 11"]);
  expect(turnsOf([0, 1, 2, 20, 21, 22], 22)).toEqual(["begins 2", "ends 10", "begins 22"]);
});

test("a single event is enough where one is counted", () => {
  expect(turnsOf([3], 14, { count: 1 })).toEqual(["begins 3", "ends 13"]);
});
