import type { QueueDeclaration } from "@devmesh/contracts/contract";
import type { NextMsgRequest, SeqMsgRequest, StoredMsg } from "@nats-io/jetstream";
import type { Bus } from "../connection/bus.ts";
import { isMissing, storeMessage, streamManager } from "../connection/streams.ts";
import { ServiceError } from "../errors.ts";
import { deadLetterStream, deadSubject, queueStream, queueSubject } from "../subjects.ts";
import { type DeadLetter, readDeadLetter } from "./dead-letter.ts";

/** A page of dead letters; `next` is the cursor of the following one, null at the end. */
export interface DeadLetterPage<Q extends QueueDeclaration> {
  readonly letters: readonly DeadLetter<Q>[];
  readonly next: number | null;
}

/** State of a queue and its dead letters. For the service that consumes it. */
export interface QueueAdmin<Q extends QueueDeclaration> {
  /** Jobs not finished, and dead letters. */
  count(): Promise<{ readonly pending: number; readonly dead: number }>;
  /** Dead letters, oldest first, after the one of sequence `after`. */
  listDeadLetters(options: { readonly after?: number; readonly limit: number }): Promise<DeadLetterPage<Q>>;
  /**
   * Queues a dead letter again, once, and deletes it; false when it does not exist. Throws `unavailable` when either is
   * uncertain.
   */
  retryDeadLetter(sequence: number): Promise<boolean>;
}

/** Administers a queue whose streams `consumeQueue` has made. */
export function createQueueAdmin<Q extends QueueDeclaration>(bus: Bus, queue: Q): QueueAdmin<Q> {
  const dead = deadLetterStream(queue.name);
  return {
    async count() {
      const manager = await streamManager(bus);
      const [waiting, given] = await Promise.all([
        manager.streams.info(queueStream(queue.name)),
        manager.streams.info(dead),
      ]);
      return { pending: waiting.state.messages, dead: given.state.messages };
    },
    async listDeadLetters({ after = 0, limit }) {
      const manager = await streamManager(bus);
      const letters: DeadLetter<Q>[] = [];
      let from = after + 1;
      for (;;) {
        const query: NextMsgRequest = { seq: from, next_by_subj: deadSubject(queue.name) };
        const stored = await nextMessage(manager.streams.getMessage(dead, query as SeqMsgRequest));
        if (stored === null) return { letters, next: null };
        if (letters.length === limit) return { letters, next: letters.at(-1)?.sequence ?? after };
        letters.push(readDeadLetter(queue, stored));
        from = stored.seq + 1;
      }
    },
    async retryDeadLetter(sequence) {
      const manager = await streamManager(bus);
      const find = () => nextMessage(manager.streams.getMessage(dead, { seq: sequence }));
      const stored = await find();
      if (stored === null) return false;
      try {
        await storeMessage(bus, queueSubject(queue.name), stored.data, {
          dedupeId: `retry-${stored.time.getTime()}-${sequence}`,
        });
        await manager.streams.deleteMessage(dead, sequence, false);
      } catch (cause) {
        // It is gone when another call was first: this one queued nothing then, under the same id.
        if ((await find()) !== null) throw ServiceError.of("unavailable", { cause });
      }
      return true;
    },
  };
}

async function nextMessage(asked: Promise<StoredMsg | null>): Promise<StoredMsg | null> {
  try {
    return await asked;
  } catch (error) {
    if (isMissing(error)) return null;
    throw ServiceError.of("unavailable", { cause: error });
  }
}
