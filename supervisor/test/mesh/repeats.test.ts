import { ManualClock } from "@devmesh/service-kit/testing/manual-clock";
import { expect, test } from "@jest/globals";
import { foldRepeats } from "../../src/mesh/service-log.ts";

/** Folds lines on a clock that `pass` moves on; returns what is shown. */
function folding() {
  const shown: string[] = [];
  const clock = new ManualClock();
  const show = foldRepeats((line) => shown.push(line), clock);
  return { shown, show, pass: (ms: number) => clock.advance(ms) };
}

test("a line that repeats is shown once, then its number each ten seconds, until it ends", async () => {
  const { shown, show, pass } = folding();
  for (let second = 0; second < 20; second++) {
    show("data error: no space");
    await pass(1_000);
  }
  show("keys warn: slow");
  expect(shown).toEqual([
    "data error: no space",
    "… 9 more in 10 s, the last: data error: no space",
    "… 10 more in 10 s, the last: data error: no space",
    "keys warn: slow",
  ]);
  await pass(10_000);
  await pass(10_000);
  show("data error: no space");
  expect(shown.slice(4)).toEqual(["data error: no space"]);
});

test("lines that differ in numbers and quoted texts alone are folded together", async () => {
  const { shown, show, pass } = folding();
  for (let at = 1; at <= 121; at++)
    show(`nats-server: 127.0.0.1:${50_000 + at} - mid:${at} - "fleet-${at}" - authentication error`);
  show("nats-server: Slow consumer");
  await pass(10_000);
  expect(shown).toEqual([
    'nats-server: 127.0.0.1:50001 - mid:1 - "fleet-1" - authentication error',
    "nats-server: Slow consumer",
    '… 120 more in 10 s, the last: nats-server: 127.0.0.1:50121 - mid:121 - "fleet-121" - authentication error',
  ]);
});

test("one line more is shown as it is, and more kinds than are remembered are all shown", async () => {
  const { shown, show, pass } = folding();
  show("twice");
  show("twice");
  await pass(10_000);
  expect(shown).toEqual(["twice", "twice"]);
  for (let at = 0; at < 300; at++) show(`kind ${"x".repeat(at)}`);
  for (let at = 0; at < 300; at++) show(`kind ${"x".repeat(at)}`);
  expect(shown.length).toBeGreaterThanOrEqual(2 + 300 + 100);
});
