import { deviceTopics, mqttBounds } from "@devmesh/contracts/mqtt";
import { type Bus, replySoonMs } from "@devmesh/service-kit/bus";
import { withTimeout } from "@devmesh/service-kit/clock";
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
  /**
   * Subscribes to the replies of one device until the result is disposed. Calls to one device share a subscription.
   * Null where a further connection is needed, and there is none within two seconds.
   */
  openCall(deviceId: string, callId: number): Promise<CallLine | null>;
}

/** Sends the frame of one call. */
export interface CallLine extends Disposable {
  /**
   * Null when there is no connection. The promise resolves with null as soon as the broker reports that it delivered
   * the frame to no client, and never otherwise. To be called again only then.
   */
  send(frame: Buffer): Promise<null> | null;
}

/** Which connections a link uses, all in account DEVICES. */
export interface DeviceLinkOptions {
  readonly bus: Bus;
  /** Opens a further connection; the caller closes it. */
  readonly connect: () => Promise<Bus>;
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

/** The broker's bound on subscriptions holds for each connection: two for each device, and those of other parts. */
const otherSubscriptions = 100;
const devicesOfConnection = Math.floor((mqttBounds.subscriptions - otherSubscriptions) / 2);

/** How long a call waits for a further connection, in milliseconds. */
const connectingMs = 2_000;

/** Calls over one connection. */
interface Line {
  readonly connected: boolean;
  readonly hasRoom: boolean;
  awaits(deviceId: string): boolean;
  send(topic: string, payload: Buffer): boolean;
  openCall(deviceId: string, callId: number): CallLine;
}

/**
 * Uses NATS rather than MQTT, so that it subscribes to the replies of a device only while that device owes one: the
 * broker drops all others. Where calls to many devices are in flight, it opens further connections.
 */
export function createDeviceLink({ bus, connect, ...options }: DeviceLinkOptions): DeviceLink {
  const first = createLine(bus, options);
  const lines = [first];
  let opening: Promise<unknown> | undefined;

  function open(): Promise<unknown> {
    if (opening === undefined) {
      opening = connect().then((further) => lines.push(createLine(further, options)));
      opening
        .catch((err: unknown) => bus.log.error({ err }, "no further connection for calls of devices"))
        .finally(() => {
          opening = undefined;
        });
    }
    return opening;
  }

  return {
    awaitConnection: bus.awaitConnection,
    send: first.send,
    async openCall(deviceId, callId) {
      const untilMs = performance.now() + connectingMs;
      for (;;) {
        const free = lines.filter(({ hasRoom }) => hasRoom);
        const line =
          lines.find((one) => one.awaits(deviceId)) ?? free.find(({ connected }) => connected) ?? free[0];
        if (line !== undefined) return line.openCall(deviceId, callId);
        const leftMs = untilMs - performance.now();
        const isOpen = leftMs > 0 && (await withTimeout(leftMs, open()).catch(() => false));
        if (!isOpen) return null;
      }
    },
  };
}

/** SUB and PUB share a connection, and a route in a cluster, so that a subscription exists before its call is sent. */
function createLine(bus: Bus, { replica, onReply }: Pick<DeviceLinkOptions, "replica" | "onReply">): Line {
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
    get connected() {
      return bus.connected;
    },
    get hasRoom() {
      return awaited.size < devicesOfConnection;
    },
    awaits: (deviceId) => awaited.has(deviceId),
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
