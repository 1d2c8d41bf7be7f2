import { expect, test } from "@jest/globals";
import { tryFrameDelivery } from "../src/frame-delivery-trial.ts";

test("no frame that the broker reports as delivered to nobody reaches a device, over three servers of which one is killed", async () => {
  const trial = { devices: 30, forMs: 12_000, longestPauseMs: 1_000, kills: 1 };
  const { sent, received, reported, reportedAndReceived, repeated } = await tryFrameDelivery(trial);
  expect({ reportedAndReceived, repeated }).toEqual({ reportedAndReceived: [], repeated: [] });
  // Both ends were tried, or nothing is shown.
  expect(Math.min(received, reported)).toBeGreaterThan(sent / 100);
}, 120_000);
