import type { Bus } from "@devmesh/service-kit/bus";

/** Publishes to a device at QoS 0. False without a connection: nothing is queued. */
export function sendToDevice(bus: Bus, subject: string, payload: Uint8Array): boolean {
  if (!bus.connected || bus.connection.isClosed() || bus.connection.isDraining()) return false;
  bus.connection.publish(subject, payload);
  return true;
}

/** Subjects that are subscribed to for as long as a bounded number of messages. */
export interface BoundedSubscription {
  /** False once the broker has delivered the allowance of a subject and ended its subscription. */
  readonly open: boolean;
  /** Lets the broker deliver so many messages more on each subject, counted from now. */
  allow(messages: number): void;
  end(): void;
}

/**
 * Subscribes to subjects on which one device publishes. The broker ends a subscription after its allowance, so that a
 * flood cannot fill the connection. `handler` must not throw.
 */
export function subscribeBounded(
  bus: Bus,
  subjects: readonly string[],
  messages: number,
  handler: (payload: Uint8Array) => void,
): BoundedSubscription {
  const subscriptions = subjects.map((subject) =>
    bus.connection.subscribe(subject, {
      max: messages,
      callback: (error, msg) => {
        if (error === null) handler(msg.data);
        else bus.log.error({ err: error, subject }, "replies of devices cannot be subscribed to");
      },
    }),
  );
  return {
    get open() {
      return subscriptions.every((subscription) => !subscription.isClosed());
    },
    allow(more) {
      for (const subscription of subscriptions) subscription.unsubscribe(subscription.getReceived() + more);
    },
    end() {
      for (const subscription of subscriptions) if (!subscription.isClosed()) subscription.unsubscribe();
    },
  };
}
