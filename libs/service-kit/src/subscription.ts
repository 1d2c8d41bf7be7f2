import type { Subscription } from "@nats-io/nats-core";
import type { Bus } from "./bus.ts";

/** Ends a subscription after what it received was handed over; one on a lost connection ends at once. */
export async function endSubscription(bus: Bus, subscription: Subscription): Promise<void> {
  if (subscription.isClosed()) return;
  try {
    if (bus.connected) await subscription.drain();
    else subscription.unsubscribe();
  } catch (error) {
    // The connection went meanwhile, and the subscription with it.
    bus.log.debug({ err: error }, "a subscription ended with its connection");
  }
}
