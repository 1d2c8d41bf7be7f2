import type { rpcEvents } from "@devmesh/contracts/rpc-bridge";
import type { Clock } from "@devmesh/service-kit/clock";
import { createCallContext } from "@devmesh/service-kit/context";
import type { Publisher } from "@devmesh/service-kit/events";
import type { Logger } from "@devmesh/service-kit/logger";
import { createDeviceAllowance } from "./device-allowance.ts";
import { createDeviceLanes } from "./device-lanes.ts";
import type { DeviceMessage } from "./device-message.ts";
import type { DeviceShadows } from "./device-shadows.ts";
import { parseDeviceTopic } from "./device-topics.ts";
import { hasNumberOutOfRange, parseJsonPayload } from "./json-payload.ts";
import type { BridgeMetrics } from "./metrics.ts";
import { withRetries } from "./retry.ts";

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
  /** A message that nobody keeps (QoS 0). It is given up when too many wait or after ten seconds. Never rejects. */
  handleUnkept(message: IncomingMessage, signal: AbortSignal): Promise<void>;
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

/** QoS 0 messages that wait or are worked on at one time; beyond it, new ones are dropped. */
const maxUnkept = 1_000;

/** A device may use up the allowance of so many seconds at once. */
const burstSeconds = 20;

/** The longest a QoS 0 message is tried, in milliseconds: later the device has said something newer. */
const unkeptMs = 10_000;

/** The longest an event is tried, in milliseconds: it is best effort (ADR 20) and must not hold up shadows behind it. */
const eventMs = 10_000;

/** Bytes of the largest payload of an event; as an event of the mesh it must fit one NATS message. */
const maxEventBytes = 256 * 1024;

/** Hands each message to who answers it, in the order of arrival for each device. */
export function createDeviceMessages(options: DeviceMessagesOptions): DeviceMessages {
  const { shadows, publisher, metrics, perSecond, clock, log } = options;
  const shadowAllowance = createDeviceAllowance(perSecond, perSecond * burstSeconds);
  const eventAllowance = createDeviceAllowance(perSecond, perSecond * burstSeconds);
  const shadowLanes = createDeviceLanes();
  // Of their own, so that a stream of events that cannot be told holds up no shadow.
  const eventLanes = createDeviceLanes();
  let unkept = 0;

  async function handle(message: IncomingMessage, signal: AbortSignal): Promise<void> {
    const topic = parseDeviceTopic(message.topicLevels);
    if (topic === null) return metrics.messagesDropped.inc({ why: "topic" });
    const { deviceId } = topic;
    const allowance = topic.kind === "event" ? eventAllowance : shadowAllowance;
    if (!allowance.take(deviceId, message.timestamp.getTime())) {
      metrics.messagesDropped.inc({ why: "too_many" });
      // Behind what it sent before, so that its answers keep their order.
      if (topic.kind === "shadow_update")
        await shadowLanes.run(deviceId, () => shadows.refuse({ ...message, deviceId }, signal));
      return;
    }
    switch (topic.kind) {
      case "shadow_update":
        return shadowLanes.run(deviceId, () => shadows.update({ ...message, deviceId }, signal));
      case "shadow_get":
        return shadowLanes.run(deviceId, () => shadows.read({ ...message, deviceId }, signal));
      case "event":
        return eventLanes.run(deviceId, () =>
          within(eventMs, signal, (bounded) => tell(message, deviceId, topic.name, bounded)),
        );
    }
  }

  async function tell(message: IncomingMessage, deviceId: string, name: string, signal: AbortSignal) {
    const { payload, timestamp, deliveryId } = message;
    if (payload.byteLength > maxEventBytes) return metrics.messagesDropped.inc({ why: "too_large" });
    const json = parseJsonPayload(payload);
    if (json === undefined || hasNumberOutOfRange(json))
      return metrics.messagesDropped.inc({ why: "not_json" });
    const event = { id: deviceId, timestamp: timestamp.toISOString(), name, payload: json };
    const dedupe = deliveryId === undefined ? {} : { dedupeId: deliveryId };
    await withRetries(() => publisher.rpc_out(event, dedupe), clock, signal);
  }

  return {
    async handleKept(message, signal) {
      try {
        await handle(message, signal);
      } catch (error) {
        if (signal.aborted) throw error;
        giveUp(error);
      }
    },
    async handleUnkept(message, signal) {
      if (unkept >= maxUnkept) return metrics.messagesDropped.inc({ why: "overload" });
      unkept++;
      try {
        await within(unkeptMs, signal, (bounded) => handle(message, bounded));
      } catch (error) {
        giveUp(error);
      } finally {
        unkept--;
      }
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
