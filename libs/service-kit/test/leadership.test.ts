import { expect, test } from "@jest/globals";
import { createLeadership } from "../src/leadership.ts";
import { createLogger } from "../src/logger.ts";
import { ManualClock } from "../src/testing/manual-clock.ts";

/** The leases of a store, as the replicas share it. */
function sharedLeases(clock: ManualClock) {
  let held: { readonly holder: string; readonly until: number } | null = null;
  return {
    isAway: false,
    async lease(_name: string, holder: string, forMs: number): Promise<boolean> {
      if (this.isAway) throw new Error("the store is away");
      if (held !== null && held.holder !== holder && held.until > clock.monotonicMs()) return false;
      held = { holder, until: clock.monotonicMs() + forMs };
      return true;
    },
    async release(_name: string, holder: string): Promise<void> {
      if (held?.holder === holder) held = null;
    },
  };
}

function startTwo() {
  const clock = new ManualClock();
  const leases = sharedLeases(clock);
  const led: string[] = [];
  const start = (holder: string) =>
    createLeadership({
      leases,
      name: "sender",
      holder,
      onLead: () => void led.push(holder),
      clock,
      log: createLogger({ service: "test", level: "silent" }),
      signal: new AbortController().signal,
    });
  return { clock, leases, led, first: start("first"), second: start("second") };
}

test("one replica leads, and the other once the first has stopped", async () => {
  const { clock, led, first, second } = startTwo();
  await clock.advance(0);
  await clock.advance(20_000);
  expect([first.leads, second.leads, led]).toEqual([true, false, ["first"]]);
  await first.stop();
  await clock.advance(4_000);
  expect([first.leads, second.leads, led]).toEqual([false, true, ["first", "second"]]);
  await second.stop();
});

test("a replica that cannot renew its lease leads no more before the lease ends, and announces that it leads again", async () => {
  const { clock, leases, led, first, second } = startTwo();
  await clock.advance(0);
  leases.isAway = true;
  await clock.advance(11_999);
  expect(first.leads).toBe(true);
  await clock.advance(1);
  expect([first.leads, second.leads]).toEqual([false, false]);
  leases.isAway = false;
  await clock.advance(8_000);
  expect([first.leads, second.leads].filter(Boolean)).toHaveLength(1);
  expect(led).toHaveLength(2);
  await Promise.all([first.stop(), second.stop()]);
});
