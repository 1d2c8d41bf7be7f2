import { createHmac, randomBytes } from "node:crypto";
import type { Clock } from "@devmesh/service-kit/clock";
import { setNewest } from "@devmesh/service-kit/set-newest";

/** Refusals kept in memory. */
const maxRefusals = 10_000;
/** How long a refusal is repeated without a look at the store, in milliseconds. */
const keptMs = 10_000;

/** A refusal that depends on nothing but the device and the password. */
type Refusal = "unknown_device" | "wrong_password";

/**
 * The last refusals by device and password. None is of a password that is right later: a token is random and new when
 * it is issued. In memory, under a digest with a key of this process, from which no password can be guessed elsewhere.
 */
export function createRefusedLogins(clock: Clock) {
  const key = randomBytes(32);
  const refusals = new Map<string, { readonly refusal: Refusal; readonly untilMs: number }>();
  const digest = (deviceId: string, password: string) =>
    createHmac("sha256", key).update(`${deviceId}\0${password}`).digest("base64");

  return {
    find(deviceId: string, password: string): Refusal | null {
      if (refusals.size === 0) return null;
      const kept = refusals.get(digest(deviceId, password));
      return kept !== undefined && clock.monotonicMs() < kept.untilMs ? kept.refusal : null;
    },
    add(deviceId: string, password: string, refusal: Refusal): void {
      const untilMs = clock.monotonicMs() + keptMs;
      setNewest(refusals, digest(deviceId, password), { refusal, untilMs }, maxRefusals);
    },
  };
}
