import type { Bus } from "./bus.ts";
import type { DeviceMessage } from "./device-stream.ts";
import { topicLevels } from "./device-topic.ts";
import type { Listening } from "./events.ts";
import { endSubscription } from "./subscription.ts";

/** A message that a device published at QoS 0: best effort, stored nowhere. */
export interface TransientDeviceMessage extends Pick<DeviceMessage, "subject" | "topicLevels" | "payload"> {
  readonly timestamp: Date;
}

/** What marks, on the core subject, the QoS a device published at. */
const qosHeader = "Nmqtt-Pub";

/**
 * Hears what devices publish at QoS 0, one replica each message. What carries another QoS is dropped here, because it
 * comes by `pullDeviceMessages`, too, as is what did not come over MQTT.
 */
export function subscribeDeviceTopics(
  bus: Bus,
  subject: string,
  queueGroup: string,
  handler: (message: TransientDeviceMessage) => void | Promise<void>,
): Listening {
  const running = new Set<Promise<void>>();
  const subscription = bus.connection.subscribe(subject, {
    queue: queueGroup,
    callback: (error, msg) => {
      if (error !== null) {
        bus.log.error({ err: error, subject }, "device messages can no longer be heard");
        return;
      }
      if (msg.headers?.get(qosHeader) !== "0") return;
      const levels = topicLevels(msg.subject);
      if (levels === null) {
        bus.metrics.deviceMessages.inc({ consumer: queueGroup, outcome: "unreadable" });
        return;
      }
      const message = { subject: msg.subject, topicLevels: levels, payload: msg.data, timestamp: new Date() };
      const handled = (async () => handler(message))().then(
        () => bus.metrics.deviceMessages.inc({ consumer: queueGroup, outcome: "ok" }),
        (failure: unknown) => {
          bus.metrics.deviceMessages.inc({ consumer: queueGroup, outcome: "failed" });
          bus.log.error({ err: failure, subject }, "a device message was not handled");
        },
      );
      running.add(handled);
      void handled.finally(() => running.delete(handled));
    },
  });
  return {
    async stop() {
      await endSubscription(bus, subscription);
      await Promise.allSettled([...running]);
    },
  };
}
