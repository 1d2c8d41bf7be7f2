import { expect, test } from "@jest/globals";
import { backOff, brokerBackOff, serviceBackOff } from "../../src/process/back-off.ts";

test("waits of a service double from one second to thirty", () => {
  const waits = backOff(serviceBackOff);
  expect(Array.from({ length: 7 }, () => waits.next(0))).toEqual([
    1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000,
  ]);
});

test("waits of a service begin anew after a minute of health, and not before", () => {
  const waits = backOff(serviceBackOff);
  waits.next(0);
  waits.next(0);
  waits.up(1_000);
  expect(waits.next(60_999)).toBe(4_000);
  waits.up(100_000);
  expect(waits.next(160_000)).toBe(1_000);
});

test("nats-server is started again at once after ten seconds of health, however often it was killed", () => {
  const waits = backOff(brokerBackOff);
  for (let kill = 0; kill < 10; kill++) {
    waits.up(kill * 20_000);
    expect(waits.next(kill * 20_000 + 10_000)).toBe(0);
  }
});

test("nats-server that dies sooner waits two seconds at most", () => {
  const waits = backOff(brokerBackOff);
  const next = () => {
    waits.up(0);
    return waits.next(9_999);
  };
  expect(Array.from({ length: 6 }, next)).toEqual([0, 250, 500, 1_000, 2_000, 2_000]);
});
