import type { Json } from "@devmesh/contracts/model/json";
import type { rpcEvents } from "@devmesh/contracts/rpc-bridge";
import type { Clock } from "@devmesh/service-kit/clock";
import { createCallContext } from "@devmesh/service-kit/context";
import type { Publisher } from "@devmesh/service-kit/events";
import { KeyedQueue } from "@devmesh/service-kit/keyed-queue";
import type { Logger } from "@devmesh/service-kit/logger";
import { TokenBuckets } from "@devmesh/service-kit/token-buckets";
import { type DeviceTopic, parseDeviceTopic } from "../device-topics.ts";
import { hasNumberOutOfRange, parseJsonPayload } from "../json-payload.ts";
import type { BridgeMetrics } from "../metrics.ts";
import { withRetries } from "../retry.ts";
import type { DeviceShadows } from "../shadow/device-shadows.ts";
import type { DeviceMessage } from "./device-message.ts";

/** A message of a device as the broker hands it over. */
export interface IncomingMessage extends Omit<DeviceMessage, "deviceId"> {
  /** Chosen by the device. */
  readonly topicLevels: readonly string[];
}

/** What devices say to the mesh, apart from RPC replies and data. */
export interface DeviceMessages {
  /**
   * A message the broker keeps until it is acknowledged (QoS 1 and 2). Resolves when it is done with, which includes
   * one that can never be; rejects when `signal` aborted before.
   */
  handleKept(message: IncomingMessage, signal: AbortSignal): Promise<void>;
  /**
   * A message that nobody keeps (QoS 0). It is given up when too many wait or after ten seconds. Never rejects. A
   * message that is dropped is done with at once, without a promise: a flood of them must cost little.
   */
  handleUnkept(message: IncomingMessage, signal: AbortSignal): Promise<void> | undefined;
}

/** What {@link createDeviceMessages} needs. */
export interface DeviceMessagesOptions {
  readonly shadows: DeviceShadows;
  readonly publisher: Publisher<typeof rpcEvents>;
  readonly metrics: Pick<BridgeMetrics, "messagesDropped">;
  /** Messages about its shadow, and as many events, of one device that are handled a second. */
  readonly perSecond: number;
  readonly clock: Clock;
  readonly log: Logger;
}

/** A message that is handled, or refused with an answer. */
interface Admitted {
  readonly topic: DeviceTopic;
  readonly isAllowed: boolean;
  /** Payload of an event. */
  readonly json?: Json;
}

/** QoS 0 messages that wait or are worked on at one time; beyond it, new ones are dropped. */
const maxUnkept = 1_000;

/**
 * QoS 0 messages of one device that wait or are worked on at one time; beyond it, its new ones are dropped. Most of a
 * flood is so dropped before it costs anything, and other devices keep the larger part of `maxUnkept`.
 */
const maxUnkeptPerDevice = 200;

/** A device may use up the allowance of so many seconds at once. */
const burstSeconds = 20;

/** Devices whose allowance is remembered. */
const maxBuckets = 10_000;

/** The longest a QoS 0 message is tried, in milliseconds: later the device has said something newer. */
const unkeptMs = 10_000;

/**
 * The longest an event is tried, in milliseconds: it is best effort (ADR 20) and must not hold up shadows behind it.
 */
const eventMs = 10_000;

/** Bytes of the largest payload of an event; as an event of the mesh it must fit one NATS message. */
const maxEventBytes = 256 * 1024;

/** Hands each message to who answers it, in the order of arrival for each device. */
export function createDeviceMessages(options: DeviceMessagesOptions): DeviceMessages {
  const { shadows, publisher, metrics, perSecond, clock, log } = options;
  const bucketOptions = { size: perSecond * burstSeconds, refill: perSecond, maxBuckets };
  // Filled by the times at which messages were sent: what waited in the broker while the mesh was away is allowed.
  const shadowBuckets = new TokenBuckets(bucketOptions);
  const eventBuckets = new TokenBuckets(bucketOptions);
  const shadowQueue = new KeyedQueue();
  // Events that cannot be published must not delay shadows.
  const eventQueue = new KeyedQueue();
  let unkept = 0;
  /** How many of them are of each device that has any. */
  const unkeptOf = new Map<string, number>();

  /** Counts a message against the allowance of its device; null where it is dropped. */
  function admit(message: IncomingMessage): Admitted | null {
    const topic = parseDeviceTopic(message.topicLevels);
    if (topic === null) {
      metrics.messagesDropped.inc({ why: "topic" });
      return null;
    }
    const buckets = topic.kind === "event" ? eventBuckets : shadowBuckets;
    const isAllowed = buckets.tryTake(topic.deviceId, message.timestamp.getTime());
    if (!isAllowed) metrics.messagesDropped.inc({ why: "too_many" });
    if (topic.kind !== "event")
      return isAllowed || topic.kind === "shadow_update" ? { topic, isAllowed } : null;
    const json = isAllowed ? readEvent(message.payload) : undefined;
    return json === undefined ? null : { topic, isAllowed, json };
  }

  /** Undefined for a payload that is no event. */
  function readEvent(payload: Uint8Array): Json | undefined {
    if (payload.byteLength > maxEventBytes) {
      metrics.messagesDropped.inc({ why: "too_large" });
      return undefined;
    }
    const json = parseJsonPayload(payload);
    if (json !== undefined && !hasNumberOutOfRange(json)) return json;
    metrics.messagesDropped.inc({ why: "not_json" });
    return undefined;
  }

  function countUnkept(deviceId: string, change: 1 | -1): void {
    unkept += change;
    const count = (unkeptOf.get(deviceId) ?? 0) + change;
    if (count === 0) unkeptOf.delete(deviceId);
    else unkeptOf.set(deviceId, count);
  }

  async function handle(
    message: IncomingMessage,
    { topic, isAllowed, json = null }: Admitted,
    signal: AbortSignal,
  ): Promise<void> {
    const { deviceId } = topic;
    // After what it sent before, so that its answers keep their order.
    if (!isAllowed) return shadowQueue.run(deviceId, () => shadows.refuse({ ...message, deviceId }, signal));
    switch (topic.kind) {
      case "shadow_update":
        return shadowQueue.run(deviceId, () => shadows.update({ ...message, deviceId }, signal));
      case "shadow_get":
        return shadowQueue.run(deviceId, () => shadows.read({ ...message, deviceId }, signal));
      case "event":
        return eventQueue.run(deviceId, () =>
          within(eventMs, signal, async (bounded) => {
            const event = {
              id: deviceId,
              timestamp: message.timestamp.toISOString(),
              name: topic.name,
              payload: json,
            };
            const dedupe = message.deliveryId === undefined ? {} : { dedupeId: message.deliveryId };
            await withRetries(() => publisher.rpc_out(event, dedupe), clock, bounded);
          }),
        );
    }
  }

  return {
    async handleKept(message, signal) {
      const admitted = admit(message);
      if (admitted === null) return;
      try {
        await handle(message, admitted, signal);
      } catch (error) {
        if (signal.aborted) throw error;
        giveUp(error);
      }
    },
    handleUnkept(message, signal) {
      const [deviceId = ""] = message.topicLevels;
      if (unkept >= maxUnkept || (unkeptOf.get(deviceId) ?? 0) >= maxUnkeptPerDevice) {
        metrics.messagesDropped.inc({ why: "overload" });
        return undefined;
      }
      const admitted = admit(message);
      if (admitted === null) return undefined;
      countUnkept(deviceId, 1);
      return within(unkeptMs, signal, (bounded) => handle(message, admitted, bounded))
        .catch(giveUp)
        .finally(() => countUnkept(deviceId, -1));
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
