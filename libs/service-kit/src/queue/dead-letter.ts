import type { QueueDeclaration } from "@devmesh/contracts/contract";
import type { StoredMsg } from "@nats-io/jetstream";
import { headers } from "@nats-io/nats-core";
import type { z } from "zod";
import type { Bus } from "../connection/bus.ts";
import type { PulledMessage } from "../connection/pull.ts";
import { storeMessage } from "../connection/streams.ts";
import { deadSubject } from "../subjects.ts";

const errorHeader = "Devmesh-Error";
const attemptsHeader = "Devmesh-Attempts";

/** A job that was given up. */
export interface DeadLetter<Q extends QueueDeclaration> {
  /** Names it in `retry`; ascending in the order in which jobs were given up. */
  readonly sequence: number;
  /** Null when it no longer matches the queue's schema. */
  readonly job: z.output<Q["job"]> | null;
  readonly error: string;
  readonly attempts: number;
  readonly failedAt: Date;
}

/** Stores a job that was given up, once, with its error. Rejects unless it is stored. */
export async function storeDeadLetter(
  bus: Bus,
  queue: string,
  message: PulledMessage,
  error: unknown,
): Promise<void> {
  const wire = headers();
  wire.set(errorHeader, headerText(error));
  wire.set(attemptsHeader, String(Math.min(message.deliveries, Number.MAX_SAFE_INTEGER)));
  const dedupeId = `${message.storedAt.getTime()}-${message.sequence}`;
  await storeMessage(bus, deadSubject(queue), message.payload, { headers: wire, dedupeId });
}

/** Error text for a header: one line, at most 1,000 characters. */
function headerText(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return (
    text
      .replace(/[^\x20-\x7e]+/g, " ")
      .trim()
      .slice(0, 1_000) || "unknown"
  );
}

/** Reads a stored dead letter; `job` is null when it does not match the schema any more. */
export function readDeadLetter<Q extends QueueDeclaration>(queue: Q, stored: StoredMsg): DeadLetter<Q> {
  let job: z.output<Q["job"]> | null = null;
  try {
    job = parseJob(queue, stored.data);
  } catch {
    // Queued by another release: listed, so that nothing is hidden.
  }
  return {
    sequence: stored.seq,
    job,
    error: stored.header.get(errorHeader),
    attempts: Number(stored.header.get(attemptsHeader)) || 0,
    failedAt: stored.time,
  };
}

/** A job as its queue keeps it. Throws when it is no JSON or does not match the queue's schema. */
export function parseJob<Q extends QueueDeclaration>(queue: Q, payload: Uint8Array): z.output<Q["job"]> {
  return queue.job.parse(JSON.parse(new TextDecoder().decode(payload))) as z.output<Q["job"]>;
}
