import { type Bus, pause } from "@devmesh/service-kit/bus";
import { withTimeout } from "@devmesh/service-kit/clock";
import { natsConnection } from "@devmesh/service-kit/connection/nats-connection";
import { createPuller, type PulledMessage, type Puller } from "@devmesh/service-kit/connection/pull";
import { streamManager } from "@devmesh/service-kit/connection/streams";
import { gatherAbandonedMessages } from "./abandoned-messages.ts";
import {
  canarySubjects,
  type DeviceConsumer,
  handles,
  mqttStream,
  mqttStreamPrefix,
  replicaGroup,
} from "./broker-subjects.ts";
import { deviceMetrics } from "./device-metrics.ts";
import { topicLevels } from "./device-topic.ts";
import { ackWaitMs, ensureDeviceConsumer, pinMs, readStreamCreated } from "./mqtt-stream.ts";

/** Longest wait of one pull, in milliseconds; a message ends it. */
const pollMs = 2_000;
/** Wait of a standby replica between two pulls, in milliseconds. */
const standbyMs = 250;
/** Waits after a batch that could not be handled, in milliseconds; the last one repeats. */
const retryAfterMs = [100, 250, 500, 1_000, 2_000, 5_000];
/** Longest wait for the broker to receive the last acknowledgements, in milliseconds. */
const flushMs = 2_000;

/** What the broker may count for one message: a payload of `max_payload`, subject and headers. */
const largestMessageBytes = 1024 * 1024 + 64 * 1024;

/** A message that a device published at QoS 1 or 2 and the broker has acknowledged to it. */
export interface DeviceMessage {
  /** The topic as a NATS subject, without the broker's prefix. */
  readonly subject: string;
  /** Levels of the MQTT topic, dots restored. Chosen by the device: check each before use. */
  readonly topicLevels: readonly string[];
  readonly payload: Uint8Array;
  /**
   * Creation time of the broker's stream, RFC 3339. With `sequence` and `timestamp` it identifies the message (ADR 6).
   */
  readonly streamCreated: string;
  /** Sequence in the broker's stream. */
  readonly sequence: number;
  /** When the broker stored it: the same at each delivery. */
  readonly timestamp: Date;
  /** Whether it was handed over before, here or elsewhere: its effects may exist already. */
  readonly redelivered: boolean;
}

/** What to pull. */
export interface PullDeviceMessagesOptions {
  readonly durable: DeviceConsumer;
  readonly batch: number;
  /** Most bytes in one batch, which bounds the memory: at least 2 MB, default 32 MB. */
  readonly maxBytes?: number;
  /** How long a batch that is not full waits for more, in milliseconds. 0: not at all. */
  readonly maxWaitMs: number;
  /** The highest sequence of a stream that the caller has stored, if any: a stream that ends before it is logged. */
  readonly lastStored?: (streamCreated: string) => Promise<number | null>;
  readonly signal: AbortSignal;
}

/**
 * Handles what devices published, in stream order, in one replica at a time; another takes over when it leaves or dies
 * ({@link pinMs}). A batch is acknowledged when `handleBatch` resolves and retried when it rejects; while a full batch
 * is handled, the next one is pulled. Creates the consumer, again after each reconnect, since the broker may be a new
 * one. Resolves after `signal` has aborted and the current batch has ended.
 */
export async function pullDeviceMessages(
  bus: Bus,
  options: PullDeviceMessagesOptions,
  handleBatch: (messages: readonly DeviceMessage[]) => Promise<void>,
): Promise<void> {
  const { durable, batch, maxWaitMs, lastStored, signal, maxBytes = 32 * 1024 * 1024 } = options;
  const puller = createPuller(bus, mqttStream, durable, { pinnedIn: replicaGroup });
  let streamCreated: string | null = null;
  let connections = 0;
  const offReconnect = bus.onDisconnect(() => {
    connections++;
    // After a reconnect there may be another stream of the same name.
    streamCreated = null;
  });
  const ended = Promise.withResolvers<void>();
  signal.addEventListener("abort", () => ended.resolve(), { once: true });
  async function prepare(created: string): Promise<void> {
    await ensureDeviceConsumer(bus, durable).catch((error: unknown) => {
      if (!signal.aborted)
        bus.log.warn({ err: error, durable }, "the consumer of device messages could not be set up");
    });
    if (lastStored !== undefined && !signal.aborted) await reportLostTail(bus, created, lastStored);
  }
  try {
    while (!signal.aborted && !bus[natsConnection].isClosed()) {
      if (streamCreated === null) {
        streamCreated = await readStreamCreated(bus, signal);
        if (streamCreated === null) continue;
        // A broker that does not answer must not delay the end.
        await Promise.race([prepare(streamCreated), ended.promise]);
        continue;
      }
      // These messages come from this stream, even if it is replaced while they are handled.
      const pulledFrom = streamCreated;
      const connection = connections;
      const wasPinned = puller.isPinned;
      const pulled = await pullBatch(bus, puller, { batch, maxBytes, maxWaitMs }, signal);
      const held = [...pulled.messages];
      using _ = keepHolding(puller, held);
      if (held.length > 0 && !wasPinned) {
        await gatherAbandonedMessages(bus, durable, puller, held, { maxBytes, signal });
      }
      if (signal.aborted || connection !== connections) {
        for (const message of held) message.reject(0);
        await pause(bus, 100, signal);
        continue;
      }
      if (pulled.failure === "missing") streamCreated = null;
      let attempt = 1;
      while (held.length > 0) {
        const next = held.slice(0, batch);
        const bytesLeft = maxBytes - bytesOf(held);
        const mayPull = held.length === batch && bytesLeft >= largestMessageBytes && puller.isPinned;
        const ahead = mayPull
          ? puller
              .pull({ batch, maxBytes: bytesLeft, expiresMs: 0 }, signal)
              .then(({ messages }) => held.push(...messages))
          : null;
        const isHandled = await handle(
          bus,
          durable,
          next,
          { streamCreated: pulledFrom, attempt },
          handleBatch,
        );
        await ahead;
        if (isHandled) {
          held.splice(0, next.length);
          attempt = 1;
        } else {
          // Held instead of rejected, since newer messages must not overtake them.
          await pause(bus, backOff(attempt++), signal);
        }
        if (!signal.aborted && connection === connections && puller.isPinned) continue;
        for (const message of held.splice(0)) message.reject(0);
      }
      if (pulled.failure !== null) {
        bus.log.debug({ durable, failure: pulled.failure }, "device messages cannot be pulled");
        await pause(bus, 500, signal);
      } else if (!puller.isPinned) {
        await pause(bus, standbyMs, signal);
      }
    }
    // The acknowledgements are on their way before the caller may close the bus, and before others get messages.
    if (bus.connected) await withTimeout(flushMs, bus.flush()).catch(() => undefined);
    await puller.unpin();
  } finally {
    offReconnect();
    puller.close();
  }
}

/** Logs that the stream lost its tail, as in a power cut: it reuses sequences that are stored already. */
async function reportLostTail(
  bus: Bus,
  streamCreated: string,
  lastStored: (streamCreated: string) => Promise<number | null>,
): Promise<void> {
  try {
    // Read first, so that what another replica stores meanwhile is in the info read below.
    const stored = await lastStored(streamCreated);
    if (stored === null) return;
    const manager = await streamManager(bus);
    const { created, state } = await manager.streams.info(mqttStream);
    if (created !== streamCreated || state.last_seq >= stored) return;
    bus.log.warn(
      { stream: mqttStream, last_sequence: state.last_seq, last_stored: stored },
      "the broker's stream ends before what is stored of it: it lost its last messages",
    );
  } catch (error) {
    bus.log.debug({ err: error }, "the end of the broker's stream cannot be compared with what is stored");
  }
}

/**
 * Takes what is there, or the first that comes; then, unless the batch is full, what came within `maxWaitMs`. That is
 * pulled at once: delivered one by one, each message would cost broker and service a write and a read of the socket.
 */
async function pullBatch(
  bus: Bus,
  puller: Puller,
  { batch, maxBytes, maxWaitMs }: { batch: number; maxBytes: number; maxWaitMs: number },
  signal: AbortSignal,
) {
  const first = await puller.pull({ batch, maxBytes, expiresMs: pollMs, untilAny: true }, signal);
  const missing = batch - first.messages.length;
  const bytesLeft = maxBytes - bytesOf(first.messages);
  const isFull = missing === 0 || bytesLeft < largestMessageBytes;
  if (first.messages.length === 0 || isFull || maxWaitMs === 0 || first.failure !== null) return first;
  await pause(bus, maxWaitMs, signal);
  const rest = await puller.pull({ batch: missing, maxBytes: bytesLeft, expiresMs: 0 }, signal);
  return { messages: [...first.messages, ...rest.messages], failure: rest.failure };
}

function bytesOf(messages: readonly PulledMessage[]): number {
  return messages.reduce((sum, { payload }) => sum + payload.length, 0);
}

/** Until disposed of, keeps the messages and the pin in this replica. */
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

const canaries: ReadonlySet<string> = new Set(Object.values(canarySubjects));

async function handle(
  bus: Bus,
  consumer: DeviceConsumer,
  pulled: readonly PulledMessage[],
  { streamCreated, attempt }: { readonly streamCreated: string; readonly attempt: number },
  handleBatch: (messages: readonly DeviceMessage[]) => Promise<void>,
): Promise<boolean> {
  const messages: DeviceMessage[] = [];
  for (const message of pulled) {
    if (canaries.has(message.subject) || !handles(consumer, message.subject)) continue;
    const subject = message.subject.slice(mqttStreamPrefix.length);
    const levels = topicLevels(subject);
    if (levels === null) {
      deviceMetrics(bus.metrics).messages.inc({ consumer, outcome: "unreadable" });
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
    deviceMetrics(bus.metrics).messages.inc({ consumer, outcome: "failed" }, messages.length);
    bus.log.error({ err: error, consumer, messages: messages.length }, "device messages were not handled");
    return false;
  }
  for (const message of pulled) message.acknowledge();
  deviceMetrics(bus.metrics).messages.inc({ consumer, outcome: "ok" }, messages.length);
  return true;
}

function backOff(failures: number): number {
  return retryAfterMs[Math.min(failures, retryAfterMs.length) - 1] ?? 0;
}
