import { jetstream } from "@nats-io/jetstream";
import { assertConnected, type Bus } from "./bus.ts";
import { ServiceError } from "./errors.ts";
import { ensureHistoryStream, isMissing, streamManager } from "./streams.ts";
import { historyStream, historySubjects } from "./subjects.ts";

/** How long the broker may take for one answer, in milliseconds. */
const answerMs = 2_000;

/** What the stream `HISTORY` can hold. */
export type HistoryName = keyof typeof historySubjects;

/** One value of the stream `HISTORY`. */
export interface StoredHistory {
  /** JSON, not checked; undefined before the first write. */
  readonly value: unknown;
  /** Sequence of the message; 0 before the first write. */
  readonly sequence: number;
}

/** Throws `unavailable` without the broker. */
export async function readStoredHistory(bus: Bus, name: HistoryName): Promise<StoredHistory> {
  assertConnected(bus);
  try {
    const manager = await streamManager(bus, answerMs);
    const message = await manager.streams.getMessage(historyStream, { last_by_subj: historySubjects[name] });
    return message === null
      ? { value: undefined, sequence: 0 }
      : { value: message.json(), sequence: message.seq };
  } catch (error) {
    if (isMissing(error)) return { value: undefined, sequence: 0 };
    throw ServiceError.of("unavailable", { service: "nats-server", cause: error });
  }
}

/**
 * Replaces what was read with its sequence, in a stream with the replicas configured now; rejects when another wrote
 * since, and without the broker.
 */
export async function replaceStoredHistory(
  bus: Bus,
  name: HistoryName,
  { value, sequence }: StoredHistory,
): Promise<void> {
  await ensureHistoryStream(bus);
  await jetstream(bus.connection, { timeout: answerMs }).publish(
    historySubjects[name],
    JSON.stringify(value),
    {
      expect: { lastSubjectSequence: sequence },
    },
  );
}
