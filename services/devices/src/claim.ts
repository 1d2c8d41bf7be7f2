import { randomUUID } from "node:crypto";
import type { Clock } from "@devmesh/service-kit/clock";

/** How long a claim on a mark lasts without renewal, in milliseconds: longer than any step of the work takes. */
const claimMs = 40_000;

/** A claim that nobody else holds. */
export function newClaim(clock: Clock) {
  return { token: randomUUID(), ...renewedClaim(clock) };
}

/** The end of a claim that is renewed now. */
export function renewedClaim(clock: Clock) {
  return { claimed_until: clock.now().getTime() + claimMs };
}
