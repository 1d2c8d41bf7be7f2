import { type Bus, endSubscription } from "@devmesh/service-kit/bus";
import { natsConnection } from "@devmesh/service-kit/connection/nats-connection";
import type { ActiveSubscription } from "@devmesh/service-kit/events/subscription";
import { RunningTasks } from "@devmesh/service-kit/running-tasks";
import type { Msg, Subscription } from "@nats-io/nats-core";
import { deviceMetrics } from "./device-metrics.ts";
import type { DeviceMessage } from "./device-stream.ts";
import { topicLevels } from "./device-topic.ts";

/** A message that a device published at QoS 0: best effort, stored nowhere. */
export interface TransientDeviceMessage extends Pick<DeviceMessage, "subject" | "topicLevels" | "payload"> {
  readonly timestamp: Date;
}

/** What marks, on the core subject, the QoS a device published at. */
const qosHeader = "Nmqtt-Pub";

/**
 * Subscribes to what devices publish at QoS 0; one replica gets each message. Messages of other QoS or origin are
 * dropped. `window` bounds what the broker delivers ahead of the reader, so that a flood does not delay other messages
 * of the connection.
 */
export function subscribeDeviceTopics(
  bus: Bus,
  subject: string,
  queueGroup: string,
  handler: (message: TransientDeviceMessage) => Promise<void> | undefined,
  window?: number,
): ActiveSubscription {
  const running = new RunningTasks();
  const subscriptions = new Set<Subscription>();
  const renewAt = window === undefined ? null : Math.ceil(window / 2);
  let stopped = false;

  function subscribe(): void {
    for (const earlier of subscriptions) if (earlier.isClosed()) subscriptions.delete(earlier);
    let received = 0;
    const subscription = bus[natsConnection].subscribe(subject, {
      queue: queueGroup,
      ...(window !== undefined && { max: window }),
      callback: (error, msg) => {
        if (error !== null) {
          bus.log.error({ err: error, subject }, "device messages are not delivered any more");
          return;
        }
        // One queue group: while two are open, each message comes on one of them.
        if (++received === renewAt && !stopped) subscribe();
        take(msg);
      },
    });
    subscriptions.add(subscription);
  }

  function take(msg: Msg): void {
    if (msg.headers?.get(qosHeader) !== "0") return;
    const levels = topicLevels(msg.subject);
    if (levels === null) {
      deviceMetrics(bus.metrics).messages.inc({ consumer: queueGroup, outcome: "unreadable" });
      return;
    }
    const message = { subject: msg.subject, topicLevels: levels, payload: msg.data, timestamp: new Date() };
    const succeeded = () => deviceMetrics(bus.metrics).messages.inc({ consumer: queueGroup, outcome: "ok" });
    const failed = (failure: unknown) => {
      deviceMetrics(bus.metrics).messages.inc({ consumer: queueGroup, outcome: "failed" });
      bus.log.error({ err: failure, subject }, "a device message was not handled");
    };
    let handling: Promise<void> | undefined;
    try {
      handling = handler(message);
    } catch (failure) {
      failed(failure);
      return;
    }
    // A promise for each dropped message would cost more than the message.
    if (handling === undefined) {
      succeeded();
      return;
    }
    running.add(handling.then(succeeded, failed));
  }

  subscribe();
  return {
    async stop() {
      stopped = true;
      await Promise.all([...subscriptions].map((subscription) => endSubscription(bus, subscription)));
      await running.settled();
    },
  };
}
