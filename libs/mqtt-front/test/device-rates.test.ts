import { expect, test } from "@jest/globals";
import { DeviceRates } from "../src/rates/device-rates.ts";

test("a device may send ten seconds of its rate at once, and is then held as long as it owes", () => {
  const rates = new DeviceRates({ messages: 100, bytes: 10_000 });
  const rate = rates.of("a");
  for (let at = 0; at < 1_000; at++) rate.count(1, 0);
  expect(rate.holdMs(0)).toBe(0);
  for (let at = 0; at < 50; at++) rate.count(1, 0);
  expect([rate.holdMs(0), rate.holdMs(400), rate.holdMs(500)]).toEqual([500, 100, 0]);
  expect(rates.of("b").holdMs(0)).toBe(0);
});

test("bytes hold a device as messages do, also after another login", () => {
  const rates = new DeviceRates({ messages: 100, bytes: 10_000 });
  rates.of("a").count(130_000, 0);
  expect(rates.of("a").holdMs(0)).toBe(3_000);
});
