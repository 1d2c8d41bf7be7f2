import { deviceTopics, mqttBounds } from "@devmesh/contracts/mqtt";
import {
  type BoundedSubscription,
  createDeviceSender,
  subscribeBounded,
} from "@devmesh/device-broker/device-link";
import { subjectOf } from "@devmesh/device-broker/device-topic";
import { type Bus, replySoonMs } from "@devmesh/service-kit/bus";
import { replyTopics } from "../device-topics.ts";

/** Sends to devices at QoS 0 and receives their replies. */
export interface DeviceLink {
  /** Resolves when there is a connection for a call, two seconds after its loss, or when the signal aborts. */
  awaitConnection(signal: AbortSignal): Promise<void>;
  /** False when there is no connection; nothing is kept for later. */
  send(topic: string, payload: Buffer): boolean;
  /** Subscribes to the replies of one device until the result is disposed. Calls to one device share a subscription. */
  openCall(deviceId: string, callId: number): CallLine;
}

/** Sends the frame of one call. */
export interface CallLine extends Disposable {
  /**
   * Null when there is no connection. The promise resolves with null as soon as the broker reports that it delivered
   * the frame to no client, and never otherwise. To be called again only then.
   */
  send(frame: Buffer): Promise<null> | null;
}

export interface DeviceLinkOptions {
  /** In account DEVICES. */
  readonly bus: Bus;
  /** Topic level of the replies to this replica. */
  readonly replica: string;
  /** Must not throw. */
  readonly onReply: (deviceId: string, payload: Buffer) => void;
}

interface Replies {
  subscription: BoundedSubscription;
  calls: number;
}

/**
 * Uses NATS rather than MQTT, so that it subscribes to the replies of a device only while that device owes one: the
 * broker drops all others. SUB and PUB share a connection, and a route in a cluster, so the subscription exists
 * before the device gets the call.
 */
export function createDeviceLink(options: DeviceLinkOptions): DeviceLink {
  const { bus, replica, onReply } = options;
  /** By call. */
  const undelivered = new Map<string, (nobody: null) => void>();
  const sender = createDeviceSender(bus, (callId) => undelivered.get(callId)?.(null));
  const awaited = new Map<string, Replies>();
  let lastCallMs = Number.NEGATIVE_INFINITY;
  bus.leaveAfter({ isBusy: () => awaited.size > 0 && performance.now() < lastCallMs + replySoonMs });

  function subscribeTo(deviceId: string, calls: number): BoundedSubscription {
    const subjects = replyTopics(deviceId, replica).map(subjectOf);
    return subscribeBounded(bus, subjects, calls * mqttBounds.repliesPerCall, (data) =>
      onReply(deviceId, Buffer.from(data.buffer, data.byteOffset, data.byteLength)),
    );
  }

  function join(deviceId: string): Replies {
    const known = awaited.get(deviceId);
    if (known === undefined) {
      const replies = { subscription: subscribeTo(deviceId, 1), calls: 1 };
      awaited.set(deviceId, replies);
      return replies;
    }
    known.calls++;
    if (known.subscription.open) known.subscription.allow(known.calls * mqttBounds.repliesPerCall);
    else {
      known.subscription.end();
      known.subscription = subscribeTo(deviceId, known.calls);
    }
    return known;
  }

  return {
    awaitConnection: bus.awaitConnection,
    send: (topic, payload) => sender.send(subjectOf(topic), payload),
    openCall(deviceId, callId) {
      lastCallMs = performance.now();
      const token = String(callId);
      const replies = join(deviceId);
      return {
        send(frame) {
          const { promise, resolve } = Promise.withResolvers<null>();
          undelivered.set(token, resolve);
          return sender.sendExpectingSubscriber(token, subjectOf(deviceTopics.call(deviceId)), frame)
            ? promise
            : null;
        },
        [Symbol.dispose]() {
          undelivered.delete(token);
          if (--replies.calls > 0) return;
          replies.subscription.end();
          awaited.delete(deviceId);
        },
      };
    },
  };
}
