import type { Clock } from "@devmesh/service-kit/clock";
import { createCallContext } from "@devmesh/service-kit/context";
import type { Logger } from "@devmesh/service-kit/logger";
import type { AccountNotices } from "./customers/account-events.ts";
import { invitationMs } from "./customers/invitation.ts";
import { mailWindowMs } from "./customers/mail-allowance.ts";
import type { KeyStore } from "./store/key-store.ts";

/**
 * How often the store is swept, in milliseconds. What a sweep removes counts as removed before: it frees space, and
 * tells who watches.
 */
const sweepMs = 10 * 60 * 1000;

/** How long one sweep may take, in milliseconds. */
const sweepTimeoutMs = 60 * 1000;

/** What a sweep works on. */
export interface Housekeeping {
  readonly store: KeyStore;
  readonly notices: AccountNotices;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Removes customers whose invitation is over, mail slots nobody counts, and device keys that a crash left over. */
async function sweep({ store, notices, clock }: Housekeeping, stopping: AbortSignal): Promise<void> {
  using call = createCallContext({ timeoutMs: sweepTimeoutMs, signal: stopping });
  const now = clock.now().getTime();
  for (;;) {
    const id = await store.customers.deleteUnconfirmed(now - invitationMs, call.signal);
    if (id === null) break;
    await notices.customerChanged(id, "deleted", call);
  }
  await store.mailSlots.prune(now - mailWindowMs, call.signal);
  await store.apiKeys.deleteOrphans(call.signal);
}

/**
 * Sweeps now and every ten minutes, until the signal aborts; a sweep that fails is logged and the next one tries
 * again.
 */
export async function keepSweeping(parts: Housekeeping, signal: AbortSignal): Promise<void> {
  const { clock, log } = parts;
  while (!signal.aborted) {
    try {
      await sweep(parts, signal);
      await clock.sleep(sweepMs, signal);
    } catch (error) {
      if (signal.aborted) return;
      log.warn({ err: error }, "a sweep of the store failed");
      await clock.sleep(sweepMs, signal).catch(() => undefined);
    }
  }
}
