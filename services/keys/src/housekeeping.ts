import type { Clock } from "@devmesh/service-kit/clock";
import type { Logger } from "@devmesh/service-kit/logger";
import { invitationMs } from "./invitation.ts";
import type { KeyStore } from "./key-store.ts";
import { mailWindowMs } from "./mail-allowance.ts";

/** How often the store is swept, in milliseconds. What a sweep removes counts as removed before: it only frees space. */
const sweepMs = 10 * 60 * 1000;

/** How long one sweep may take, in milliseconds. */
const sweepTimeoutMs = 60 * 1000;

/** Removes customers whose invitation is over, mail slots nobody counts, and device keys that a crash left over. */
async function sweep(store: KeyStore, clock: Clock, stopping: AbortSignal): Promise<void> {
  const signal = AbortSignal.any([stopping, AbortSignal.timeout(sweepTimeoutMs)]);
  const now = clock.now().getTime();
  await store.customers.deleteUnconfirmed(now - invitationMs, signal);
  await store.mailSlots.prune(now - mailWindowMs, signal);
  await store.apiKeys.deleteOrphans(signal);
}

/** Sweeps now and every ten minutes, until the signal aborts; a sweep that fails is logged and the next one tries again. */
export async function keepSweeping(
  store: KeyStore,
  clock: Clock,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    try {
      await sweep(store, clock, signal);
      await clock.sleep(sweepMs, signal);
    } catch (error) {
      if (signal.aborted) return;
      log.warn({ err: error }, "a sweep of the store failed");
      await clock.sleep(sweepMs, signal).catch(() => undefined);
    }
  }
}
