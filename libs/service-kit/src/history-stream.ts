import { jetstream } from "@nats-io/jetstream";
import type { z } from "zod";
import { assertConnected, type Bus } from "./bus.ts";
import { ServiceError } from "./errors.ts";
import { ensureHistoryStream, isMissing, streamManager } from "./streams.ts";
import { historyStream, historySubjects } from "./subjects.ts";

/** How long the broker may take for one answer, in milliseconds. */
const answerMs = 2_000;

/** What the stream `HISTORY` can hold. */
export type HistoryName = keyof typeof historySubjects;

/** One list of the stream `HISTORY`. */
export interface StoredHistory<T> {
  /** Empty before the first write, and where another release wrote in another form. */
  readonly value: T;
  /** Sequence of the message; 0 before the first write. */
  readonly sequence: number;
}

/** Throws `unavailable` without the broker. */
export async function readStoredHistory<S extends z.ZodArray>(
  bus: Bus,
  name: HistoryName,
  schema: S,
): Promise<StoredHistory<z.output<S>>> {
  assertConnected(bus);
  const none = { value: schema.parse([]), sequence: 0 };
  try {
    const manager = await streamManager(bus, answerMs);
    const message = await manager.streams.getMessage(historyStream, { last_by_subj: historySubjects[name] });
    if (message === null) return none;
    return { value: schema.safeParse(message.json()).data ?? none.value, sequence: message.seq };
  } catch (error) {
    if (isMissing(error)) return none;
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
  { value, sequence }: StoredHistory<unknown>,
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
