import { bridgeConsumers } from "@devmesh/device-broker/broker-subjects";
import { type DeviceMessage, pullDeviceMessages } from "@devmesh/device-broker/device-stream";
import { isRetainedByMesh, takenSubjects } from "@devmesh/device-broker/device-topic";
import { subscribeDeviceTopics } from "@devmesh/device-broker/transient-device-messages";
import type { Bus } from "@devmesh/service-kit/bus";
import type { ActiveSubscription } from "@devmesh/service-kit/events/subscription";
import type { DeviceMessages, TopicMessage } from "./device-messages.ts";

interface DeviceSubscriptionsOptions {
  /** In account DEVICES. */
  readonly bus: Bus;
  readonly messages: DeviceMessages;
  /** Ends the pulling of stored messages; those received are finished. */
  readonly stopping: AbortSignal;
  /** Aborts the handling of messages; the broker delivers them again. */
  readonly signal: AbortSignal;
}

/** Stored messages handled at one time. */
const maxBatch = 256;

/** Unread messages of one kind at QoS 0 that the broker delivers: a flood of them delays replies to calls. */
const transientWindow = 400;

/**
 * Subscribes, shared with all replicas, to what devices publish and to what the broker stored of it. `stop` resolves
 * when no message is being handled.
 */
export function subscribeToDevices(options: DeviceSubscriptionsOptions): ActiveSubscription {
  const { bus, messages, stopping, signal } = options;
  const transient = takenSubjects("rpc-bridge").map((subject) =>
    subscribeDeviceTopics(
      bus,
      subject,
      bus.name,
      (message) => messages.handleTransient({ ...message, redelivered: false }, signal),
      transientWindow,
    ),
  );
  const pulling = bridgeConsumers.map((durable) =>
    pullDeviceMessages(bus, { durable, batch: maxBatch, maxWaitMs: 0, signal: stopping }, async (batch) => {
      const published = batch.filter(({ subject }) => !isRetainedByMesh(subject));
      await Promise.all(published.map((message) => messages.handleStored(storedMessage(message), signal)));
    }),
  );
  return {
    async stop() {
      await Promise.all([...pulling, ...transient.map((subscription) => subscription.stop())]);
    },
  };
}

function storedMessage(message: DeviceMessage): TopicMessage {
  const { topicLevels, payload, timestamp, redelivered, streamCreated, sequence } = message;
  // A broker that lost the tail of its stream reuses sequences: the time distinguishes them (ADR 6).
  const deliveryId = `${streamCreated}/${sequence}/${timestamp.getTime()}`;
  return { topicLevels, payload, timestamp, redelivered, deliveryId };
}
