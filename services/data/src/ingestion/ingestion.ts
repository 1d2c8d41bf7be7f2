import { type DeviceMessage, pullDeviceMessages } from "@devmesh/device-broker/device-stream";
import { takenSubjects } from "@devmesh/device-broker/device-topic";
import {
  subscribeDeviceTopics,
  type TransientDeviceMessage,
} from "@devmesh/device-broker/transient-device-messages";
import type { Bus } from "@devmesh/service-kit/bus";
import type { Clock } from "@devmesh/service-kit/clock";
import type { ActiveSubscription } from "@devmesh/service-kit/events/subscription";
import type { DataStore } from "../store/data-store.ts";
import type { BatchWriter } from "./batch-writer.ts";
import type { IncomingMessage } from "./message-check.ts";
import { gatherQos0Messages } from "./qos0-messages.ts";

/** Options of {@link startIngestion}. */
export interface IngestionOptions {
  /** In account DEVICES. */
  readonly bus: Bus;
  readonly writer: BatchWriter;
  readonly store: Pick<DataStore, "lastSequence">;
  readonly clock: Clock;
  /** The most messages of one batch. */
  readonly batch: number;
  /** The longest wait for a batch to fill, in milliseconds. */
  readonly waitMs: number;
  /** Ends ingestion; a batch under way is finished. */
  readonly signal: AbortSignal;
}

/**
 * The most payload of one batch, in bytes. It blocks the process for about half a second with SQLite; larger batches
 * are no faster.
 */
const batchBytes = 2 * 1024 * 1024;

/**
 * Stores the records that devices publish. QoS 1 and 2 come from the broker's stream, one batch in flight and one
 * replica at a time so that ids ascend in the broker's order, and are acknowledged once stored; QoS 0 is best effort.
 */
export function startIngestion(options: IngestionOptions): ActiveSubscription {
  const { bus, writer, store, clock, batch, waitMs, signal } = options;
  // Rejects only for a defect; then nothing handles it, and the process ends.
  const pulling = pullDeviceMessages(
    bus,
    {
      durable: "data",
      batch,
      maxBytes: batchBytes,
      maxWaitMs: waitMs,
      lastStored: (streamCreated) => store.lastSequence(streamCreated),
      signal,
    },
    (messages) => writer.write(messages.map(storedMessage)),
  );
  const transient = gatherQos0Messages({ writer, clock, batch, batchBytes, waitMs });
  const listening = takenSubjects("data").map((subject) =>
    subscribeDeviceTopics(bus, subject, bus.name, (message) => {
      transient.add(qos0Message(message));
      return undefined;
    }),
  );
  return {
    async stop() {
      await Promise.all([pulling, ...listening.map((subscription) => subscription.stop())]);
      await transient.stop();
    },
  };
}

function storedMessage({
  topicLevels,
  payload,
  timestamp,
  streamCreated,
  sequence,
}: DeviceMessage): IncomingMessage {
  return { topicLevels, payload, timestamp: timestamp.getTime(), delivery: { streamCreated, sequence } };
}

function qos0Message({ topicLevels, payload, timestamp }: TransientDeviceMessage): IncomingMessage {
  return { topicLevels, payload, timestamp: timestamp.getTime(), delivery: null };
}
