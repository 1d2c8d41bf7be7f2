import type { Bus } from "@devmesh/service-kit/bus";
import type { Clock } from "@devmesh/service-kit/clock";
import {
  type DeviceMessage,
  pullDeviceMessages,
  subscribeDeviceTopics,
  type TransientDeviceMessage,
} from "@devmesh/service-kit/device-stream";
import type { Logger } from "@devmesh/service-kit/logger";
import type { DataStore } from "./data-store.ts";
import type { Ingestion } from "./ingest.ts";
import type { IncomingMessage } from "./message-check.ts";
import { gatherQos0Messages } from "./qos0-messages.ts";

/** What the intake needs. */
export interface IntakeOptions {
  /** In account DEVICES. */
  readonly bus: Bus;
  readonly store: Pick<DataStore, "awaitIngestionTurn">;
  readonly log: Logger;
  readonly ingestion: Ingestion;
  readonly clock: Clock;
  /** The most messages of one batch. */
  readonly batch: number;
  /** The longest wait for a batch to fill, in milliseconds. */
  readonly waitMs: number;
  /** Ends the intake; a batch that is under way is finished. */
  readonly signal: AbortSignal;
}

/** Messages coming in from the broker. */
export interface Intake {
  /** Resolves when nothing is under way any more; what waited is stored. */
  stop(): Promise<void>;
}

/**
 * Takes what devices publish below `db/`: at QoS 1 and 2 from the broker's stream, acknowledged once it is stored, one batch in
 * flight and one replica at a time, so that ids ascend in the order the broker took the messages; at QoS 0 as it is told, best effort.
 */
export function startIntake(options: IntakeOptions): Intake {
  const { bus, ingestion, clock, batch, waitMs } = options;
  // Rejects for nothing but a defect; then nobody handles it, and the process ends rather than going on deaf.
  const pulling = pullInTurns(options);
  const transient = gatherQos0Messages({ ingestion, clock, batch, waitMs });
  const listening = subscribeDeviceTopics(bus, "db.>", bus.name, (message) =>
    transient.add(qos0Message(message)),
  );
  return {
    async stop() {
      await Promise.all([pulling, listening.stop()]);
      await transient.stop();
    },
  };
}

/**
 * What was pulled and not stored goes back to the broker, which gives it out again only after a moment; until then nobody is to pull
 * what is newer. In milliseconds.
 */
const givingBackMs = 500;

/** Pulls whenever it is this replica's turn. */
async function pullInTurns(options: IntakeOptions): Promise<void> {
  const { bus, store, log, ingestion, clock, batch, waitMs, signal } = options;
  while (!signal.aborted) {
    const turn = await store.awaitIngestionTurn(signal).catch((error: unknown) => {
      if (signal.aborted) return null;
      throw error;
    });
    if (turn === null) return;
    log.info("this replica stores what devices publish at QoS 1 and 2");
    await pullDeviceMessages(
      bus,
      {
        durable: "data",
        batch,
        maxWaitMs: waitMs,
        awaitAbandoned: true,
        signal: AbortSignal.any([signal, turn.lost]),
      },
      (messages) => ingestion.take(messages.map(keptMessage)),
    );
    if (turn.lost.aborted) log.warn({ err: turn.lost.reason }, "this replica stores no more of it for now");
    await clock.sleep(givingBackMs);
    await turn.end();
    if (bus.connection.isClosed()) return;
  }
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
