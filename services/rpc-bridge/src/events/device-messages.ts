import type { Json } from "@devmesh/contracts/model/json";
import { native } from "@devmesh/contracts/mqtt";
import type { rpcEvents } from "@devmesh/contracts/rpc-bridge";
import type { ReportDiagnosis } from "@devmesh/device-broker/diagnosis-reporter";
import type { Clock } from "@devmesh/service-kit/clock";
import { ServiceError } from "@devmesh/service-kit/errors";
import type { Publisher } from "@devmesh/service-kit/events/publisher";
import { KeyedQueue } from "@devmesh/service-kit/keyed-queue";
import { KeyedSlots } from "@devmesh/service-kit/keyed-slots";
import type { Logger } from "@devmesh/service-kit/logger";
import { createCallContext } from "@devmesh/service-kit/rpc/context";
import { TokenBuckets } from "@devmesh/service-kit/token-buckets";
import { type DeviceTopic, isDeviceId, parseDeviceTopic } from "../device-topics.ts";
import { firstOf, parseJsonPayload } from "../json-payload.ts";
import type { BridgeMetrics } from "../metrics.ts";
import { withRetries } from "../retry.ts";
import type { DeviceShadows, ShadowMessage } from "../shadow/device-shadows.ts";

/** A message of a device as the broker delivers it. */
export interface TopicMessage extends Omit<ShadowMessage, "deviceId"> {
  /** Chosen by the device. */
  readonly topicLevels: readonly string[];
  /** Equal at each delivery of one message; absent at QoS 0, which is delivered once. */
  readonly deliveryId?: string;
}

/** Handles what devices publish, except RPC replies and data. */
export interface DeviceMessages {
  /**
   * A message that the broker stores until it is acknowledged (QoS 1 and 2). Resolves when it is handled or given up;
   * rejects when `signal` aborts first.
   */
  handleStored(message: TopicMessage, signal: AbortSignal): Promise<void>;
  /**
   * A message at QoS 0. It is given up when too many wait or after ten seconds. Never rejects; a dropped message has no
   * promise, so that a flood costs little.
   */
  handleTransient(message: TopicMessage, signal: AbortSignal): Promise<void> | undefined;
}

export interface DeviceMessagesOptions {
  readonly shadows: DeviceShadows;
  readonly publisher: Publisher<typeof rpcEvents>;
  readonly metrics: Pick<BridgeMetrics, "messagesDropped" | "messagesHandled">;
  readonly report: ReportDiagnosis;
  /** Messages about its shadow, and as many events, of one device handled a second. */
  readonly perSecond: number;
  readonly clock: Clock;
  readonly log: Logger;
}

/** A message to handle, or to refuse with an answer. */
interface Admitted {
  readonly topic: DeviceTopic;
  readonly isAllowed: boolean;
  /** Payload of an event. */
  readonly json?: Json;
}

/** QoS 0 messages that wait or are handled at one time; beyond it, new ones are dropped. */
const maxTransient = 1_000;

/** The bound of one device: a flood is dropped early, and other devices keep most of `maxTransient`. */
const maxTransientPerDevice = 200;

/** Burst size, in seconds of the rate. */
const burstSeconds = 20;

/** Devices whose bucket is remembered. */
const maxBuckets = 10_000;

/** How long a QoS 0 message is retried, in milliseconds: by then the device has sent a newer one. */
const transientTimeoutMs = 10_000;

/** How long an event is retried, in milliseconds: it is best effort (ADR 20). */
const eventTimeoutMs = 10_000;

/** Handles the messages of each device in the order of their arrival. */
export function createDeviceMessages(options: DeviceMessagesOptions): DeviceMessages {
  const { shadows, publisher, metrics, report, perSecond, clock, log } = options;
  const bucketOptions = { size: perSecond * burstSeconds, refill: perSecond, maxBuckets };
  // Filled by the times at which messages were sent: what waited in the broker while the mesh was away is allowed.
  const shadowBuckets = new TokenBuckets(bucketOptions);
  const eventBuckets = new TokenBuckets(bucketOptions);
  const shadowQueue = new KeyedQueue();
  // Events that cannot be published must not delay shadows.
  const eventQueue = new KeyedQueue();
  const transientSlots = new KeyedSlots({ total: maxTransient });

  /** Takes a token of the device's bucket; null for a dropped message. */
  function admit(message: TopicMessage): Admitted | null {
    const topic = parseDeviceTopic(message.topicLevels);
    if (topic === null) {
      drop(message, "topic");
      return null;
    }
    const buckets = topic.kind === "event" ? eventBuckets : shadowBuckets;
    const isAllowed = buckets.tryTake(topic.deviceId, message.timestamp.getTime());
    if (!isAllowed) drop(message, "too_many");
    if (topic.kind !== "event")
      return isAllowed || topic.kind === "shadowUpdate" ? { topic, isAllowed } : null;
    const json = isAllowed ? readEvent(message) : undefined;
    return json === undefined ? null : { topic, isAllowed, json };
  }

  function readEvent(message: TopicMessage): Json | undefined {
    if (message.payload.byteLength > native.topics.event.maxBytes) {
      drop(message, "too_large");
      return undefined;
    }
    const { value, changed = [] } = parseJsonPayload(message.payload) ?? {};
    if (value !== undefined && changed.length === 0) return value;
    drop(message, "not_json", changed.length === 0 ? undefined : firstOf(changed));
    return undefined;
  }

  /** Counts a message that the device should not have sent, and shows it in the device's diagnostics. */
  function drop(
    { topicLevels }: TopicMessage,
    why: "topic" | "too_many" | "too_large" | "not_json",
    detail?: string,
  ): void {
    metrics.messagesDropped.inc({ why });
    const [id = ""] = topicLevels;
    if (!isDeviceId(id)) return;
    const name = why === "too_many" ? "allowance_exceeded" : "publication_refused";
    report({ id, name, reason: why, topic: topicLevels.join("/"), detail: detail ?? null });
  }

  async function handle(message: TopicMessage, admitted: Admitted, signal: AbortSignal): Promise<void> {
    await dispatch(message, admitted, signal);
    metrics.messagesHandled.inc({ kind: admitted.topic.kind });
  }

  async function dispatch(
    message: TopicMessage,
    { topic, isAllowed, json = null }: Admitted,
    signal: AbortSignal,
  ): Promise<void> {
    const { deviceId } = topic;
    // Queued, so that the device gets its answers in order.
    if (!isAllowed) return shadowQueue.run(deviceId, () => shadows.refuse({ ...message, deviceId }, signal));
    switch (topic.kind) {
      case "shadowUpdate":
        return shadowQueue.run(deviceId, () => shadows.update({ ...message, deviceId }, signal));
      case "shadowGet":
        return shadowQueue.run(deviceId, () => shadows.read({ ...message, deviceId }, signal));
      case "event":
        return eventQueue.run(deviceId, () =>
          within(eventTimeoutMs, signal, async (bounded) => {
            const event = {
              id: deviceId,
              timestamp: message.timestamp.toISOString(),
              name: topic.name,
              payload: json,
            };
            const dedupe = message.deliveryId === undefined ? {} : { dedupeId: message.deliveryId };
            const store = async () => {
              const outcome = await publisher.rpc_out(event, { ...dedupe, isRetried: true });
              if (outcome === "failed") throw ServiceError.of("unavailable");
              return outcome;
            };
            const outcome = await withRetries(store, clock, bounded);
            if (outcome !== "ok") giveUp(new Error(`the event cannot be published: ${outcome}`));
          }),
        );
      default:
        // A topic that this service takes and does not handle fails to compile.
        topic.kind satisfies never;
    }
  }

  return {
    async handleStored(message, signal) {
      const admitted = admit(message);
      if (admitted === null) return;
      try {
        await handle(message, admitted, signal);
      } catch (error) {
        if (signal.aborted) throw error;
        giveUp(error);
      }
    },
    handleTransient(message, signal) {
      const [deviceId = ""] = message.topicLevels;
      const release = transientSlots.acquire(deviceId, maxTransientPerDevice);
      if (release === null) {
        metrics.messagesDropped.inc({ why: "overload" });
        return undefined;
      }
      const admitted = admit(message);
      if (admitted === null) {
        release();
        return undefined;
      }
      return within(transientTimeoutMs, signal, (bounded) => handle(message, admitted, bounded))
        .catch(giveUp)
        .finally(release);
    },
  };

  /** Runs `work` with a signal that aborts after `ms` at the latest. */
  async function within<T>(ms: number, signal: AbortSignal, work: (bounded: AbortSignal) => Promise<T>) {
    using bound = createCallContext({ timeoutMs: ms, signal, clock });
    return await work(bound.signal);
  }

  function giveUp(error: unknown): void {
    metrics.messagesDropped.inc({ why: "failed" });
    log.warn({ err: error }, "a message of a device was given up");
  }
}
