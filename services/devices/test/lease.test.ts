import { ManualClock } from "@devmesh/service-kit/testing/manual-clock";
import { expect, test } from "@jest/globals";
import { keepLease, newLease } from "../src/operations/lease.ts";

test("a lease that is held is renewed well before it ends, until it is released", async () => {
  const clock = new ManualClock();
  const { claimed_until } = newLease(clock);
  const renewedAt: number[] = [];
  const lease = keepLease(clock, async () => {
    renewedAt.push(clock.now().getTime());
    return true;
  });
  for (let second = 0; second < 30; second++) await clock.advance(1_000);
  expect(renewedAt.length).toBeGreaterThan(5);
  expect(renewedAt[1]).toBeLessThan(claimed_until - 5_000);
  await lease.release();
  const { length } = renewedAt;
  await clock.advance(60_000);
  expect(renewedAt).toHaveLength(length);
  expect(clock.pending).toBe(0);
});

test("a failed renewal is followed by another, a lost lease by none", async () => {
  const clock = new ManualClock();
  const outcomes = [() => Promise.reject(new Error("store away")), async () => true, async () => false];
  let renewals = 0;
  const lease = keepLease(clock, () => (outcomes[renewals++] as () => Promise<boolean>)());
  for (let second = 0; second < 60; second++) await clock.advance(1_000);
  expect(renewals).toBe(3);
  await lease.release();
});

test("who releases a lease waits for the renewal under way", async () => {
  const clock = new ManualClock();
  let finish: (renewed: boolean) => void = () => undefined;
  const lease = keepLease(
    clock,
    () =>
      new Promise((resolve) => {
        finish = resolve;
      }),
  );
  await clock.advance(5_000);
  let released = false;
  const releasing = lease.release().then(() => {
    released = true;
  });
  await Promise.resolve();
  expect(released).toBe(false);
  finish(true);
  await releasing;
});
