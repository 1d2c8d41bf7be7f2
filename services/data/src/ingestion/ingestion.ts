import { type DeviceMessage, pullDeviceMessages } from "@devmesh/device-broker/device-stream";
import {
  subscribeDeviceTopics,
  type TransientDeviceMessage,
} from "@devmesh/device-broker/transient-device-messages";
import type { Bus } from "@devmesh/service-kit/bus";
import type { Clock } from "@devmesh/service-kit/clock";
import type { DataStore } from "../store/data-store.ts";
import type { Ingestion } from "./ingest.ts";
import type { IncomingMessage } from "./message-check.ts";
import { gatherQos0Messages } from "./qos0-messages.ts";

/** What the intake needs. */
export interface IntakeOptions {
  /** In account DEVICES. */
  readonly bus: Bus;
  readonly ingestion: Ingestion;
  readonly store: Pick<DataStore, "lastSequence">;
  readonly clock: Clock;
  /** The most messages of one batch. */
  readonly batch: number;
  /** The longest wait for a batch to fill, in milliseconds. */
  readonly waitMs: number;
  /** Ends the intake; a batch that is under way is finished. */
  readonly signal: AbortSignal;
}

/**
 * The most payload of one batch, in bytes. To store this much of text takes SQLite about half a second, and meanwhile
 * the process answers nothing, neither queries nor probes; larger batches store no faster.
 */
const batchBytes = 2 * 1024 * 1024;

/** Messages coming in from the broker. */
export interface Intake {
  /** Resolves when nothing is under way any more; what waited is stored. */
  stop(): Promise<void>;
}

/**
 * Takes what devices publish below `db/`: at QoS 1 and 2 from the broker's stream, acknowledged once it is stored,
 * one batch in flight and one replica at a time, so that ids ascend in the order the broker took the messages; at QoS
 * 0 as it is told, best effort.
 */
export function startIntake(options: IntakeOptions): Intake {
  const { bus, ingestion, store, clock, batch, waitMs, signal } = options;
  // Rejects for nothing but a defect; then nobody handles it, and the process ends rather than going on deaf.
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
    (messages) => ingestion.take(messages.map(keptMessage)),
  );
  const transient = gatherQos0Messages({ ingestion, clock, batch, batchBytes, waitMs });
  const listening = subscribeDeviceTopics(bus, "db.>", bus.name, (message) => {
    transient.add(qos0Message(message));
    return undefined;
  });
  return {
    async stop() {
      await Promise.all([pulling, listening.stop()]);
      await transient.stop();
    },
  };
}

function keptMessage({
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
