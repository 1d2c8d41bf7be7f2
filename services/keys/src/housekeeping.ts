import type { Clock } from "@devmesh/service-kit/clock";
import type { Logger } from "@devmesh/service-kit/logger";
import { repeat } from "@devmesh/service-kit/retry";
import { createCallContext } from "@devmesh/service-kit/rpc/context";
import type { AccountEvents } from "./account-events.ts";
import { deleteInvalidSessions } from "./api-keys/sessions.ts";
import { invitationMs } from "./customers/invitation.ts";
import { mailWindowMs } from "./customers/mail-allowance.ts";
import type { KeyStore } from "./store/key-store.ts";

/** Between two sweeps, in milliseconds. What a sweep deletes has been invalid before. */
const sweepMs = 10 * 60 * 1000;
const sweepTimeoutMs = 60 * 1000;

/** The stores that a sweep clears, and its clock. */
export interface HousekeepingOptions {
  readonly store: Pick<KeyStore, "apiKeys" | "customers" | "mailSlots" | "sessions">;
  readonly events: AccountEvents;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Deletes customers whose invitation expired, expired mail slots, sessions that are over, and device keys that a crash
 * left.
 */
async function sweep({ store, events, clock }: HousekeepingOptions, stopping: AbortSignal): Promise<void> {
  using call = createCallContext({ timeoutMs: sweepTimeoutMs, signal: stopping });
  const now = clock.now().getTime();
  for (;;) {
    const id = await store.customers.deleteUnconfirmed(now - invitationMs, call.signal);
    if (id === null) break;
    events.customerChanged(id, "deleted", call);
  }
  await store.mailSlots.prune(now - mailWindowMs, call.signal);
  await store.apiKeys.deleteOrphans(call.signal);
  await deleteInvalidSessions(store, now, call.signal);
}

/** Sweeps now and every ten minutes, until the signal aborts; a sweep that fails is logged. */
export async function keepSweeping(options: HousekeepingOptions, signal: AbortSignal): Promise<void> {
  const { clock, log } = options;
  await repeat(() => sweep(options, signal), {
    everyMs: sweepMs,
    onFailure: (error) => log.warn({ err: error }, "a sweep of the store failed"),
    clock,
    signal,
  });
}
