import { deviceTopics, mqttBounds } from "@devmesh/contracts/mqtt";
import { type Bus, replySoonMs } from "@devmesh/service-kit/bus";
import { natsConnection } from "@devmesh/service-kit/connection/nats-connection";
import { isNoResponders } from "@devmesh/service-kit/connection/requests";
import { createInbox, type Subscription } from "@nats-io/nats-core";
import { subjectOf } from "./device-topic.ts";

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

/** The replies of a device, on the topics of mDash firmware and of Mongoose OS. */
interface Replies {
  subscriptions: readonly Subscription[];
  calls: number;
}

/**
 * Uses NATS rather than MQTT, so that it subscribes to the replies of a device only while that device owes one: the
 * broker drops all others. SUB and PUB share a connection, and a route in a cluster, so the subscription exists
 * before the device gets the call.
 */
export function createDeviceLink({ bus, replica, onReply }: DeviceLinkOptions): DeviceLink {
  const connection = bus[natsConnection];
  /** By call. */
  const undelivered = new Map<string, (nobody: null) => void>();
  const awaited = new Map<string, Replies>();
  const inbox = `${createInbox(bus.inboxPrefix)}.`;
  let lastCallMs = Number.NEGATIVE_INFINITY;
  bus.leaveAfter({ isBusy: () => awaited.size > 0 && performance.now() < lastCallMs + replySoonMs });

  connection.subscribe(`${inbox}*`, {
    callback: (error, msg) => {
      if (error !== null) bus.log.error({ err: error }, "missing subscribers cannot be detected");
      else if (isNoResponders(msg)) undelivered.get(msg.subject.slice(inbox.length))?.(null);
    },
  });

  function publish(topic: string, payload: Buffer, reply?: string): boolean {
    if (!bus.connected || connection.isClosed() || connection.isDraining()) return false;
    connection.publish(subjectOf(topic), payload, reply === undefined ? {} : { reply });
    return true;
  }

  /** The broker ends each subscription after its allowance, so that a flood cannot fill the connection. */
  function subscribe(deviceId: string, calls: number): readonly Subscription[] {
    const topics = [deviceTopics.replyWithoutSource(deviceId), deviceTopics.reply(deviceId, replica)];
    return topics.map(subjectOf).map((subject) =>
      connection.subscribe(subject, {
        max: calls * mqttBounds.repliesPerCall,
        callback: (error, msg) => {
          if (error === null) onReply(deviceId, bufferOf(msg.data));
          else bus.log.error({ err: error, subject }, "replies of devices cannot be subscribed to");
        },
      }),
    );
  }

  function join(deviceId: string): Replies {
    const known = awaited.get(deviceId);
    if (known === undefined) {
      const replies = { subscriptions: subscribe(deviceId, 1), calls: 1 };
      awaited.set(deviceId, replies);
      return replies;
    }
    known.calls++;
    if (known.subscriptions.some((subscription) => subscription.isClosed())) {
      end(known);
      known.subscriptions = subscribe(deviceId, known.calls);
    } else {
      const more = known.calls * mqttBounds.repliesPerCall;
      for (const subscription of known.subscriptions)
        subscription.unsubscribe(subscription.getReceived() + more);
    }
    return known;
  }

  function end({ subscriptions }: Replies): void {
    for (const subscription of subscriptions) if (!subscription.isClosed()) subscription.unsubscribe();
  }

  return {
    awaitConnection: bus.awaitConnection,
    send: (topic, payload) => publish(topic, payload),
    openCall(deviceId, callId) {
      lastCallMs = performance.now();
      const token = String(callId);
      const replies = join(deviceId);
      return {
        send(frame) {
          const { promise, resolve } = Promise.withResolvers<null>();
          undelivered.set(token, resolve);
          return publish(deviceTopics.call(deviceId), frame, inbox + token) ? promise : null;
        },
        [Symbol.dispose]() {
          undelivered.delete(token);
          if (--replies.calls > 0) return;
          end(replies);
          awaited.delete(deviceId);
        },
      };
    },
  };
}

function bufferOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}
