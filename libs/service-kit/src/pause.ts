import type { Bus } from "./bus.ts";
import { systemClock } from "./clock.ts";

/** Waits `ms` milliseconds, less when the bus comes back or `signal` aborts meanwhile; never rejects. */
export async function pause(bus: Bus, ms: number, signal: AbortSignal): Promise<void> {
  const woken = new AbortController();
  const off = bus.onReconnect(() => woken.abort());
  await systemClock.sleep(ms, AbortSignal.any([signal, woken.signal])).catch(() => undefined);
  off();
}
