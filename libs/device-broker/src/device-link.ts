import type { Bus } from "@devmesh/service-kit/bus";
import { natsConnection } from "@devmesh/service-kit/connection/nats-connection";
import { isNoResponders } from "@devmesh/service-kit/connection/requests";
import { createInbox } from "@nats-io/nats-core";

/** Publishes to devices at QoS 0. */
export interface DeviceSender {
  /** False without a connection: nothing is queued. */
  send(subject: string, payload: Uint8Array): boolean;
  /** Sends; the broker reports `token`, one level of a subject, when it delivered the message to no client. */
  sendExpectingSubscriber(token: string, subject: string, payload: Uint8Array): boolean;
}

/**
 * Publishes on a connection in account DEVICES. `onNoSubscriber` gets the token of a message that nobody received, at
 * once; it must not throw.
 */
export function createDeviceSender(bus: Bus, onNoSubscriber: (token: string) => void): DeviceSender {
  const connection = bus[natsConnection];
  const inbox = `${createInbox(bus.inboxPrefix)}.`;
  connection.subscribe(`${inbox}*`, {
    callback: (error, msg) => {
      if (error !== null) bus.log.error({ err: error }, "missing subscribers cannot be detected");
      else if (isNoResponders(msg)) onNoSubscriber(msg.subject.slice(inbox.length));
    },
  });

  function send(subject: string, payload: Uint8Array, reply?: string): boolean {
    if (!bus.connected || connection.isClosed() || connection.isDraining()) return false;
    connection.publish(subject, payload, reply === undefined ? {} : { reply });
    return true;
  }

  return {
    send: (subject, payload) => send(subject, payload),
    sendExpectingSubscriber: (token, subject, payload) => send(subject, payload, inbox + token),
  };
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
    bus[natsConnection].subscribe(subject, {
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
