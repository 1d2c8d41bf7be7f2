import { randomUUID } from "node:crypto";
import type { Clock } from "@devmesh/service-kit/clock";

/**
 * How long a claim on a mark lasts without renewal, in milliseconds: so much later another replica takes up the work
 * of one that died, at the earliest.
 */
const claimMs = 15_000;

/** How often the claim on work that takes longer is renewed, in milliseconds. */
const renewEveryMs = 4_000;

/** A claim that nobody else holds. */
export function newClaim(clock: Clock) {
  return { token: randomUUID(), ...renewedClaim(clock) };
}

/** The end of a claim that is renewed now. */
export function renewedClaim(clock: Clock) {
  return { claimed_until: clock.now().getTime() + claimMs };
}

/** A claim that is kept up beside some work. */
export interface HeldClaim {
  /** Resolves when no renewal is under way and none comes any more. */
  release(): Promise<void>;
}

/** Renews a claim until it is released or lost; a renewal that fails is followed by the next. */
export function holdClaim(clock: Clock, renew: () => Promise<boolean>): HeldClaim {
  const released = new AbortController();
  const renewing = (async () => {
    while (!released.signal.aborted) {
      await clock.sleep(renewEveryMs, released.signal).catch(() => undefined);
      if (released.signal.aborted) return;
      if (!(await renew().catch(() => true))) return;
    }
  })();
  return {
    async release() {
      released.abort();
      await renewing;
    },
  };
}
