import {
  type BoundedSubscription,
  createDeviceSender,
  subscribeBounded,
} from "@devmesh/device-broker/device-link";
import type { Bus } from "@devmesh/service-kit/bus";
import { deviceTopics, replyTopics, subjectOf } from "../device-topics.ts";

/** Sends to devices at QoS 0 and receives their replies. */
export interface DeviceLink {
  /** Resolves when there is a connection for a call, two seconds after its loss, or when the signal aborts. */
  awaitConnection(signal: AbortSignal): Promise<void>;
  /** False when there is no connection; nothing is kept for later. */
  send(topic: string, payload: Buffer): boolean;
  /** The same for a call; `onNoSubscriber` gets the device if none of its clients subscribes. */
  sendCall(deviceId: string, payload: Buffer): boolean;
  /** Subscribes to the replies of one device until the result is disposed. Calls to one device share a subscription. */
  awaitReplies(deviceId: string): Disposable;
}

export interface DeviceLinkOptions {
  /** In account DEVICES. */
  readonly bus: Bus;
  /** Topic level of the replies to this replica. */
  readonly replica: string;
  /** Must not throw. */
  readonly onReply: (deviceId: string, payload: Buffer) => void;
  /** Must not throw. */
  readonly onNoSubscriber: (deviceId: string) => void;
}

interface Replies {
  subscription: BoundedSubscription;
  calls: number;
}

/** Messages that a device may send on each of its reply topics for each of its calls in flight. */
const repliesPerCall = 100;

/** Most devices reply sooner than this, in milliseconds; a slow reply rarely arrives just when a server is left. */
const soonMs = 1_000;

/**
 * Uses NATS rather than MQTT, so that it subscribes to the replies of a device only while that device owes one: the
 * broker drops all others. SUB and PUB share a connection, and a route in a cluster, so the subscription exists
 * before the device gets the call.
 */
export function createDeviceLink(options: DeviceLinkOptions): DeviceLink {
  const { bus, replica, onReply, onNoSubscriber } = options;
  const sender = createDeviceSender(bus, onNoSubscriber);
  const awaited = new Map<string, Replies>();
  let lastCallMs = Number.NEGATIVE_INFINITY;
  bus.leaveAfter({ isBusy: () => awaited.size > 0 && performance.now() < lastCallMs + soonMs });

  function subscribeTo(deviceId: string, calls: number): BoundedSubscription {
    const subjects = replyTopics(deviceId, replica).map(subjectOf);
    return subscribeBounded(bus, subjects, calls * repliesPerCall, (data) =>
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
    if (known.subscription.open) known.subscription.allow(known.calls * repliesPerCall);
    else {
      known.subscription.end();
      known.subscription = subscribeTo(deviceId, known.calls);
    }
    return known;
  }

  return {
    awaitConnection: bus.awaitConnection,
    send: (topic, payload) => sender.send(subjectOf(topic), payload),
    sendCall: (id, payload) => sender.sendExpectingSubscriber(id, subjectOf(deviceTopics.calls(id)), payload),
    awaitReplies(deviceId) {
      lastCallMs = performance.now();
      const replies = join(deviceId);
      return {
        [Symbol.dispose]() {
          if (--replies.calls > 0) return;
          replies.subscription.end();
          awaited.delete(deviceId);
        },
      };
    },
  };
}
