import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, jest, test } from "@jest/globals";
import { disturb, withBadAnswers } from "../src/fleet/faults.ts";
import { seededRandom } from "../src/fleet/seeded-random.ts";
import { noTotals } from "../src/fleet/totals.ts";

const model = { app: "adder", reported: {}, telemetry: [], functions: { add: () => 5 } };

/** Answers of a flaky device to sixty calls; "missing" is late or never. */
async function answers(seed: number, device: number) {
  const totals = { ...noTotals };
  const { add } = withBadAnswers(model, seededRandom(seed, device), totals).functions;
  const told: string[] = [];
  for (let call = 0; call < 60; call++) {
    const answer = await Promise.race([add?.([2, 3]), nextTurn("missing")]);
    told.push(answer === 5 ? "right" : answer === "missing" ? "missing" : "wrong");
  }
  return { told, totals };
}

test("a flaky device answers most calls, and others wrongly, late or never", async () => {
  const { told, totals } = await answers(1, 1);
  const count = (kind: string) => told.filter((answer) => answer === kind).length;
  expect(count("right")).toBeGreaterThan(count("wrong") + count("missing"));
  expect(count("wrong")).toBeGreaterThan(0);
  expect(count("missing")).toBeGreaterThan(count("wrong"));
  expect(totals.badAnswers).toBe(count("wrong") + count("missing"));
});

test("faults are the same again for the same seed, and others for another seed or device", async () => {
  const { told } = await answers(1, 1);
  expect((await answers(1, 1)).told).toEqual(told);
  expect((await answers(2, 1)).told).not.toEqual(told);
  expect((await answers(1, 2)).told).not.toEqual(told);
});

test("only a device that is connected counts as dropped", () => {
  jest.useFakeTimers();
  const dropsOf = (connected: boolean) => {
    const totals = { ...noTotals };
    const device = { id: "one", connected, drop() {}, send() {} };
    const end = disturb(device, seededRandom(1, 1), totals);
    jest.advanceTimersByTime(600_000);
    end();
    return totals.drops;
  };
  try {
    expect(dropsOf(true)).toBeGreaterThan(0);
    expect(dropsOf(false)).toBe(0);
  } finally {
    jest.useRealTimers();
  }
});
