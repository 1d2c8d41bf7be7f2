import { jetstream } from "@nats-io/jetstream";
import { assertConnected, type Bus } from "./bus.ts";
import { ensureHistoryStream, isMissing, streamManager } from "./streams.ts";
import { historyStream, historySubject } from "./subjects.ts";

/** How long the broker may take for one answer, in milliseconds. */
const answerMs = 2_000;

/** What the stream `HISTORY` holds. */
export interface StoredHistory {
  /** JSON, not checked; undefined before the first write. */
  readonly value: unknown;
  /** Sequence of the message; 0 before the first write. */
  readonly sequence: number;
}

/** Rejects without the broker. */
export async function readStoredHistory(bus: Bus): Promise<StoredHistory> {
  assertConnected(bus);
  const manager = await streamManager(bus, answerMs);
  try {
    const message = await manager.streams.getMessage(historyStream, { last_by_subj: historySubject });
    return message === null
      ? { value: undefined, sequence: 0 }
      : { value: message.json(), sequence: message.seq };
  } catch (error) {
    if (isMissing(error)) return { value: undefined, sequence: 0 };
    throw error;
  }
}

/** Replaces what was read with `sequence`; rejects when another wrote since, and without the broker. */
export async function replaceStoredHistory(bus: Bus, value: unknown, sequence: number): Promise<void> {
  await ensureHistoryStream(bus);
  await jetstream(bus.connection, { timeout: answerMs }).publish(historySubject, JSON.stringify(value), {
    expect: { lastSequence: sequence },
  });
}
