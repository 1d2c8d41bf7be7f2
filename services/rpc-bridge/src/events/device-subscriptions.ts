import { type DeviceMessage, pullDeviceMessages } from "@devmesh/device-broker/device-stream";
import { subscribeDeviceTopics } from "@devmesh/device-broker/transient-device-messages";
import type { Bus } from "@devmesh/service-kit/bus";
import type { DeviceMessages, IncomingMessage } from "./device-messages.ts";

/** What devices publish on its way to those who handle it, shared with all replicas. */
export interface DeviceIntake {
  /** Resolves when nothing taken is under way any more; takes no more from now on. */
  stop(): Promise<void>;
}

/** What {@link startDeviceIntake} needs. */
export interface DeviceIntakeOptions {
  /** In account DEVICES. */
  readonly bus: Bus;
  readonly messages: DeviceMessages;
  /** Ends the pulling of kept messages; what is under way is finished. */
  readonly stopping: AbortSignal;
  /** Gives up what is under way; the broker delivers it again. */
  readonly signal: AbortSignal;
}

/** The consumer of what devices say at QoS 1 and 2. */
const durable = "rpc-bridge";

/** Kept messages that are worked on at one time. */
const maxBatch = 256;

/**
 * Messages of one kind at QoS 0 that the broker delivers before they are read. Replies to calls come after them on
 * the same connection, so a flood delays them by what it takes to drop so many; a burst of a fleet that fits loses
 * nothing.
 */
const unkeptWindow = 400;

/** What devices say at QoS 0, as subjects. */
const unkeptSubjects = ["*.shadow.update", "*.shadow.get", "*.event.>"];

/** Takes what devices publish from now on, and what the broker has kept of it. */
export function startDeviceIntake({ bus, messages, stopping, signal }: DeviceIntakeOptions): DeviceIntake {
  const unkept = unkeptSubjects.map((subject) =>
    subscribeDeviceTopics(
      bus,
      subject,
      bus.name,
      (message) => messages.handleUnkept({ ...message, redelivered: false }, signal),
      unkeptWindow,
    ),
  );

  async function pull(): Promise<void> {
    const options = {
      durable,
      batch: maxBatch,
      maxWaitMs: 0,
      signal: stopping,
    } as const;
    await pullDeviceMessages(bus, options, async (batch) => {
      await Promise.all(batch.map((message) => messages.handleKept(keptMessage(message), signal)));
    });
  }

  const pulling = pull();
  return {
    async stop() {
      await Promise.all([pulling, ...unkept.map((listening) => listening.stop())]);
    },
  };
}

function keptMessage(message: DeviceMessage): IncomingMessage {
  const { topicLevels, payload, timestamp, redelivered, streamCreated, sequence } = message;
  // A broker that lost the tail of its stream gives the sequences again; its time of the message distinguishes them
  // (ADR 6).
  const deliveryId = `${streamCreated}/${sequence}/${timestamp.getTime()}`;
  return { topicLevels, payload, timestamp, redelivered, deliveryId };
}
