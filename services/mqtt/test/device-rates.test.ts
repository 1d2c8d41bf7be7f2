import { expect, test } from "@jest/globals";
import { DeviceRates } from "../src/rates/device-rates.ts";

test("a device may send ten seconds of its rate at once, and is then held as long as it owes", () => {
  const rates = new DeviceRates({ messages: 100, bytes: 10_000 });
  for (let at = 0; at < 1_000; at++) rates.count("a", 1, 0);
  expect(rates.holdMs("a", 0)).toBe(0);
  for (let at = 0; at < 50; at++) rates.count("a", 1, 0);
  expect([rates.holdMs("a", 0), rates.holdMs("a", 400), rates.holdMs("a", 500)]).toEqual([500, 100, 0]);
  expect(rates.holdMs("b", 0)).toBe(0);
});

test("bytes hold a device as messages do", () => {
  const rates = new DeviceRates({ messages: 100, bytes: 10_000 });
  rates.count("a", 130_000, 0);
  expect(rates.holdMs("a", 0)).toBe(3_000);
});
