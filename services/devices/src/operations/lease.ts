import { randomUUID } from "node:crypto";
import type { Clock } from "@devmesh/service-kit/clock";

/** How long a lease lasts without renewal, in milliseconds; then another replica may take the operation over. */
const leaseMs = 15_000;

/** How often a kept lease is renewed, in milliseconds. */
const renewEveryMs = 4_000;

/** A lease with a new token. */
export function newLease(clock: Clock) {
  return { token: randomUUID(), ...renewedLease(clock) };
}

/** The expiry of a lease that is renewed now. */
export function renewedLease(clock: Clock) {
  return { claimed_until: clock.now().getTime() + leaseMs };
}

/** Renews a lease until it is released or lost; a renewal that fails is followed by the next. */
export function keepLease(clock: Clock, renew: () => Promise<boolean>) {
  const released = new AbortController();
  const renewing = (async () => {
    while (!released.signal.aborted) {
      await clock.sleep(renewEveryMs, released.signal).catch(() => undefined);
      if (released.signal.aborted) return;
      if (!(await renew().catch(() => true))) return;
    }
  })();
  return {
    /** Resolves when no renewal is running any more. */
    async release(): Promise<void> {
      released.abort();
      await renewing;
    },
  };
}
