import type { Clock } from "@devmesh/service-kit/clock";
import type { MailSlotStore } from "./mail-slot-store.ts";
import { digestSecret } from "./secret.ts";

/** The window over which mails are counted, in milliseconds. It slides: any hour counts, not the hours of the clock. */
export const mailWindowMs = 60 * 60 * 1000;

/** How many mails an hour may leave. */
export interface MailLimits {
  readonly perAddress: number;
  readonly total: number;
}

/** A mail that may be sent. */
interface MailSlot {
  /** Gives it back when the mail could not even be queued. */
  giveBack(signal: AbortSignal): Promise<void>;
}

/** Decides whether one more mail may be sent to an address; null when not. */
export type TakeMailSlot = (email: string, signal: AbortSignal) => Promise<MailSlot | null>;

/** Counts in the store, so that a restart opens no second allowance. */
export function createMailAllowance(store: MailSlotStore, clock: Clock, limits: MailLimits): TakeMailSlot {
  return async (email, signal) => {
    const now = clock.now().getTime();
    const since = now - mailWindowMs;
    const ofAddress = `address ${Buffer.from(digestSecret(email)).toString("base64url")}`;
    // The address first: whoever hammers one address must not use up what is there for all.
    if (!(await store.take(ofAddress, limits.perAddress, since, now, signal))) return null;
    if (!(await store.take("total", limits.total, since, now, signal))) {
      await store.giveBack(ofAddress, now, signal);
      return null;
    }
    return {
      async giveBack(signal) {
        await store.giveBack("total", now, signal);
        await store.giveBack(ofAddress, now, signal);
      },
    };
  };
}
