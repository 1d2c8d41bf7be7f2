import { ManualClock } from "@devmesh/service-kit/testing/manual-clock";
import { expect, test } from "@jest/globals";
import { holdClaim, newClaim } from "../src/deletion/lease.ts";

test("a claim that is held is renewed well before it ends, until it is released", async () => {
  const clock = new ManualClock();
  const { claimed_until } = newClaim(clock);
  const renewedAt: number[] = [];
  const claim = holdClaim(clock, async () => {
    renewedAt.push(clock.now().getTime());
    return true;
  });
  for (let second = 0; second < 30; second++) await clock.advance(1_000);
  expect(renewedAt.length).toBeGreaterThan(5);
  expect(renewedAt[1]).toBeLessThan(claimed_until - 5_000);
  await claim.release();
  const { length } = renewedAt;
  await clock.advance(60_000);
  expect(renewedAt).toHaveLength(length);
  expect(clock.pending).toBe(0);
});

test("a failed renewal is followed by another, a lost claim by none", async () => {
  const clock = new ManualClock();
  const outcomes = [() => Promise.reject(new Error("store away")), async () => true, async () => false];
  let renewals = 0;
  const claim = holdClaim(clock, () => (outcomes[renewals++] as () => Promise<boolean>)());
  for (let second = 0; second < 60; second++) await clock.advance(1_000);
  expect(renewals).toBe(3);
  await claim.release();
});

test("who releases a claim waits for the renewal under way", async () => {
  const clock = new ManualClock();
  let finish: (renewed: boolean) => void = () => undefined;
  const claim = holdClaim(
    clock,
    () =>
      new Promise((resolve) => {
        finish = resolve;
      }),
  );
  await clock.advance(5_000);
  let released = false;
  const releasing = claim.release().then(() => {
    released = true;
  });
  await Promise.resolve();
  expect(released).toBe(false);
  finish(true);
  await releasing;
});
