import { AckPolicy, DeliverPolicy, DiscardPolicy, StorageType } from "@nats-io/jetstream";
import { nanos } from "@nats-io/nats-core";
import { gatherAbandonedMessages } from "./abandoned-messages.ts";
import type { Bus } from "./bus.ts";
import { systemClock } from "./clock.ts";
import { topicLevels } from "./device-topic.ts";
import { ServiceError } from "./errors.ts";
import type { Listening } from "./events.ts";
import { createPuller, type PulledMessage, type Puller } from "./pull.ts";
import { ensureConsumer, isMissing, streamManager } from "./streams.ts";
import { deviceConsumers, mqttStream, mqttStreamPrefix, replicaGroup } from "./subjects.ts";
import { endSubscription } from "./subscription.ts";

/** Longest wait of one request for messages, in milliseconds; a message ends it at once. */
const pollMs = 2_000;
/** After this long without a request the broker gives the messages of a consumer to another replica; in milliseconds. */
const pinMs = 5_000;
/** How often a replica that gets no messages looks whether it is its turn, in milliseconds. */
const standbyMs = 250;
/** The broker delivers a message again when it was not acknowledged for this long; in milliseconds. */
const ackWaitMs = 10_000;
/** How long the broker's stream may take to tell about itself before it is asked again, in milliseconds. */
const streamInfoMs = 1_500;
/** Waits after a batch that could not be handled, in milliseconds; the last one repeats. */
const retryAfterMs = [100, 250, 500, 1_000, 2_000, 5_000];

/** What the broker may count for one message: a payload of `max_payload`, subject and headers. */
const largestMessageBytes = 1024 * 1024 + 64 * 1024;

/** A message that a device published at QoS 1 or 2 and the broker has acknowledged to it. */
export interface DeviceMessage {
  /** The topic as a NATS subject, without the broker's prefix. */
  readonly subject: string;
  /** Levels of the MQTT topic, dots restored. Chosen by the device: check each before use. */
  readonly topicLevels: readonly string[];
  readonly payload: Uint8Array;
  /** When the broker's stream was made, RFC 3339. With `sequence` it names the message for ever. */
  readonly streamCreated: string;
  /** Sequence in the broker's stream. */
  readonly sequence: number;
  /** When the broker stored it. */
  readonly timestamp: Date;
  /** Whether it was handed over before, here or elsewhere: its effects may exist already. */
  readonly redelivered: boolean;
}

/** What to pull, and how much of it at once. */
export interface PullDeviceMessagesOptions {
  /** One of the consumers that `provisionDeviceStreams` makes. */
  readonly durable: keyof typeof deviceConsumers;
  /** Most messages in one batch. */
  readonly batch: number;
  /** Most bytes in one batch: bounds the memory. At least 2 MB, since a message may weigh up to `max_payload`. Default 32 MB. */
  readonly maxBytes?: number;
  /** How long a batch that is not full waits for more, in milliseconds. 0: not at all. */
  readonly maxWaitMs: number;
  /** Ends the pulling; a batch being handled is finished and acknowledged first. */
  readonly signal: AbortSignal;
}

/**
 * Hands over what devices published, in the broker's order, strictly one batch at a time over all replicas: the others get
 * nothing until the one that does leaves, at once, or dies, within {@link pinMs} and the time to acknowledge. Each message is
 * acknowledged when `handleBatch` resolves; when it rejects, the same batch comes again after a wait. Outlives broker restarts
 * and a consumer that is not there yet. Resolves once `signal` has aborted and nothing is under way.
 */
export async function pullDeviceMessages(
  bus: Bus,
  options: PullDeviceMessagesOptions,
  handleBatch: (messages: readonly DeviceMessage[]) => Promise<void>,
): Promise<void> {
  const { durable, batch, maxWaitMs, signal, maxBytes = 32 * 1024 * 1024 } = options;
  const puller = createPuller(bus, mqttStream, durable, { pinnedIn: replicaGroup });
  let streamCreated: string | null = null;
  let connections = 0;
  const offReconnect = bus.onDisconnect(() => {
    connections++;
    // Behind a lost connection there may be another stream of the same name.
    streamCreated = null;
  });
  try {
    while (!signal.aborted && !bus.connection.isClosed()) {
      streamCreated ??= await readStreamCreated(bus, signal);
      if (streamCreated === null) continue;
      // What is pulled now comes from this one, whatever is heard of the stream before it has been handled.
      const pulledFrom = streamCreated;
      const connection = connections;
      const wasPinned = puller.isPinned;
      const pulled = await pullBatch(puller, { batch, maxBytes, maxWaitMs }, signal);
      const held = [...pulled.messages];
      using _ = keepHolding(puller, held);
      if (held.length > 0 && !wasPinned) {
        await gatherAbandonedMessages(bus, durable, puller, held, { maxBytes, signal });
      }
      if (signal.aborted || connection !== connections) {
        for (const message of held) message.reject(0);
        await waitFor(bus, 100, signal);
        continue;
      }
      if (pulled.failure === "missing") streamCreated = null;
      let attempt = 1;
      while (held.length > 0) {
        const next = held.slice(0, batch);
        if (await handle(bus, durable, next, { streamCreated: pulledFrom, attempt }, handleBatch)) {
          held.splice(0, next.length);
          attempt = 1;
          continue;
        }
        // Kept rather than given back meanwhile: what is newer must not come before it.
        await waitFor(bus, backOff(attempt++), signal);
        if (!signal.aborted && connection === connections && puller.isPinned) continue;
        for (const message of held.splice(0)) message.reject(0);
      }
      if (pulled.failure !== null) {
        bus.log.debug({ durable, failure: pulled.failure }, "device messages cannot be pulled");
        await waitFor(bus, 500, signal);
      } else if (!puller.isPinned) {
        await waitFor(bus, standbyMs, signal);
      }
    }
    // The acknowledgements are on their way before the caller may close the bus, and before others get messages.
    if (bus.connected) await bus.flush().catch(() => undefined);
    await puller.unpin();
  } finally {
    offReconnect();
    puller.close();
  }
}

/** Takes what is there at once, or the first that comes; then fills the batch for `maxWaitMs`. */
async function pullBatch(
  puller: Puller,
  { batch, maxBytes, maxWaitMs }: { batch: number; maxBytes: number; maxWaitMs: number },
  signal: AbortSignal,
) {
  const first = await puller.pull({ batch, maxBytes, expiresMs: pollMs, untilAny: true }, signal);
  const missing = batch - first.messages.length;
  const bytesLeft = maxBytes - first.messages.reduce((sum, { payload }) => sum + payload.length, 0);
  const isFull = missing === 0 || bytesLeft < largestMessageBytes;
  if (first.messages.length === 0 || isFull || maxWaitMs === 0 || first.failure !== null) return first;
  const rest = await puller.pull({ batch: missing, maxBytes: bytesLeft, expiresMs: maxWaitMs }, signal);
  return { messages: [...first.messages, ...rest.messages], failure: rest.failure };
}

/** Until disposed of: neither the messages nor the ones behind them go to another replica. */
function keepHolding(puller: Puller, messages: readonly PulledMessage[]): Disposable {
  const extending = setInterval(() => {
    for (const message of messages) message.extend();
  }, ackWaitMs / 3);
  const keeping = setInterval(() => puller.keepPin(), pinMs / 4);
  return {
    [Symbol.dispose]() {
      clearInterval(extending);
      clearInterval(keeping);
    },
  };
}

async function handle(
  bus: Bus,
  consumer: string,
  pulled: readonly PulledMessage[],
  { streamCreated, attempt }: { readonly streamCreated: string; readonly attempt: number },
  handleBatch: (messages: readonly DeviceMessage[]) => Promise<void>,
): Promise<boolean> {
  const messages: DeviceMessage[] = [];
  for (const message of pulled) {
    const subject = message.subject.slice(mqttStreamPrefix.length);
    const levels = topicLevels(subject);
    if (levels === null) {
      bus.metrics.deviceMessages.inc({ consumer, outcome: "unreadable" });
      continue;
    }
    messages.push({
      subject,
      topicLevels: levels,
      payload: message.payload,
      streamCreated,
      sequence: message.sequence,
      timestamp: message.storedAt,
      redelivered: message.deliveries > 1 || attempt > 1,
    });
  }
  try {
    if (messages.length > 0) await handleBatch(messages);
  } catch (error) {
    bus.metrics.deviceMessages.inc({ consumer, outcome: "failed" }, messages.length);
    bus.log.error({ err: error, consumer, messages: messages.length }, "device messages were not handled");
    return false;
  }
  for (const message of pulled) message.acknowledge();
  bus.metrics.deviceMessages.inc({ consumer, outcome: "ok" }, messages.length);
  return true;
}

/** Null while the stream is not there or cannot be asked, after a wait. */
async function readStreamCreated(bus: Bus, signal: AbortSignal): Promise<string | null> {
  try {
    const manager = await streamManager(bus, streamInfoMs);
    return (await manager.streams.info(mqttStream)).created;
  } catch (error) {
    if (!isMissing(error)) bus.log.debug({ err: error }, "the broker's stream cannot be asked");
    await waitFor(bus, 500, signal);
    return null;
  }
}

function backOff(failures: number): number {
  return retryAfterMs[Math.min(failures, retryAfterMs.length) - 1] ?? 0;
}

/** Waits `ms`, less when the bus comes back or the pulling ends meanwhile. */
async function waitFor(bus: Bus, ms: number, signal: AbortSignal): Promise<void> {
  const woken = new AbortController();
  const off = bus.onReconnect(() => woken.abort());
  await systemClock.sleep(ms, AbortSignal.any([signal, woken.signal])).catch(() => undefined);
  off();
}

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

/** Bounds of the broker's own stream of device messages. */
export interface ProvisionDeviceStreamsOptions {
  /** When so much is stored and not taken off yet, the broker acknowledges nothing more. Default 1 GB. */
  readonly maxBytes?: number;
  readonly signal: AbortSignal;
}

/**
 * Bounds `$MQTT_msgs` and makes the durable consumers on it. Waits for the stream, which the broker makes at the first
 * MQTT login: log in first. Idempotent; rejects when `signal` aborts, the broker refuses, or the bus is closed.
 */
export async function provisionDeviceStreams(
  bus: Bus,
  { maxBytes = 1024 * 1024 * 1024, signal }: ProvisionDeviceStreamsOptions,
): Promise<void> {
  const manager = await streamManager(bus);
  for (;;) {
    signal.throwIfAborted();
    if (bus.connection.isClosed())
      throw ServiceError.of("unavailable", { cause: new Error("the bus is closed") });
    if ((await readStreamCreated(bus, signal)) !== null) break;
  }
  const { config } = await manager.streams.info(mqttStream);
  // As many copies as all other streams, should the broker be told otherwise: an acknowledgement promises them.
  const replicas = Math.max(config.num_replicas, bus.streamReplicas);
  if (
    config.max_bytes !== maxBytes ||
    config.discard !== DiscardPolicy.New ||
    config.num_replicas !== replicas
  ) {
    const wanted = { max_bytes: maxBytes, discard: DiscardPolicy.New, num_replicas: replicas };
    await manager.streams.update(mqttStream, wanted);
  }
  for (const [durable, filters] of Object.entries(deviceConsumers)) {
    await ensureConsumer(bus, mqttStream, {
      durable_name: durable,
      filter_subjects: [...filters],
      ack_policy: AckPolicy.Explicit,
      deliver_policy: DeliverPolicy.All,
      ack_wait: nanos(ackWaitMs),
      max_deliver: -1,
      // Also the most that can be lost to a batch of a replica that died, for `ack_wait`.
      max_ack_pending: 1_000,
      priority_groups: [replicaGroup],
      priority_policy: "pinned_client",
      priority_timeout: nanos(pinMs),
      mem_storage: config.storage === StorageType.Memory,
    });
  }
}
