import { expect, test } from "@jest/globals";
import { backOff } from "../../src/process/back-off.ts";

test("waits double from one second to thirty", () => {
  const waits = backOff();
  expect(Array.from({ length: 7 }, () => waits.next(0))).toEqual([
    1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000,
  ]);
});

test("waits begin anew after a minute of health, and not before", () => {
  const waits = backOff();
  waits.next(0);
  waits.next(0);
  waits.up(1_000);
  expect(waits.next(60_999)).toBe(4_000);
  waits.up(100_000);
  expect(waits.next(160_000)).toBe(1_000);
});
