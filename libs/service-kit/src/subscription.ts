import type { Subscription } from "@nats-io/nats-core";
import type { Bus } from "./bus.ts";

/** Ends a subscription after its received messages were handled; at once without a connection. */
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
