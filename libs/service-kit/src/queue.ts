import type { QueueDeclaration } from "@devmesh/contracts/contract";
import {
  AckPolicy,
  DeliverPolicy,
  jetstream,
  type NextMsgRequest,
  type SeqMsgRequest,
  type StoredMsg,
} from "@nats-io/jetstream";
import { headers, nanos } from "@nats-io/nats-core";
import type { z } from "zod";
import { assertConnected, type Bus } from "./bus.ts";
import { systemClock } from "./clock.ts";
import { type CallContext, createCallContext } from "./context.ts";
import { ServiceError } from "./errors.ts";
import { createPuller, type PulledMessage, type Puller } from "./pull.ts";
import {
  ensureConsumer,
  ensureDeadLetterStream,
  ensureQueueStream,
  isMissing,
  streamManager,
} from "./streams.ts";
import { deadLetterStream, deadSubject, queueConsumer, queueStream, queueSubject } from "./subjects.ts";
import { childSpan, formatTraceparent, parseTraceparent, startTrace, traceHeader } from "./trace.ts";

/** How long queueing waits for the stream's acknowledgement, in milliseconds. */
const enqueueTimeoutMs = 2_000;
/** After this long without a sign of life, another replica takes a job over; in milliseconds. */
const takeoverMs = 10_000;
/** Longest wait of one request for a job, in milliseconds. */
const pollMs = 5_000;

const errorHeader = "Devmesh-Error";
const attemptsHeader = "Devmesh-Attempts";

/** What may go along with a job. */
export interface EnqueueOptions {
  /** A second job with the same id within an hour is not queued again. */
  readonly dedupeId?: string;
  /** The call that led to the job; its trace goes along and its time bounds the wait. */
  readonly call?: CallContext;
}

/** Puts jobs into a queue. */
export interface Producer<Q extends QueueDeclaration> {
  /** Resolves when the job is stored; throws `unavailable` when that is not known, or the queue is full. */
  enqueue(job: z.input<Q["job"]>, options?: EnqueueOptions): Promise<void>;
}

/** Makes the queue's stream if it is missing, and a producer for it. */
export async function createProducer<Q extends QueueDeclaration>(bus: Bus, queue: Q): Promise<Producer<Q>> {
  await ensureQueueStream(bus, queue.name);
  const stream = jetstream(bus.connection, { timeout: enqueueTimeoutMs });
  return {
    async enqueue(job, { dedupeId, call } = {}) {
      assertConnected(bus);
      const body = JSON.stringify(queue.job.parse(job));
      const wire = headers();
      wire.set(traceHeader, formatTraceparent(call?.trace ?? startTrace()));
      try {
        await stream.publish(queueSubject(queue.name), body, {
          headers: wire,
          timeout: Math.max(1, Math.min(enqueueTimeoutMs, call?.deadline.remainingMs() ?? enqueueTimeoutMs)),
          ...(dedupeId === undefined ? {} : { msgID: dedupeId }),
        });
      } catch (cause) {
        throw ServiceError.of("unavailable", { cause });
      }
    },
  };
}

/** One try at a job. */
export interface Attempt extends CallContext {
  /** 1 at the first. */
  readonly number: number;
  /** Whether a failure makes the job a dead letter. */
  readonly last: boolean;
  /** Sequence of the job in its queue: the same in each attempt. */
  readonly sequence: number;
  /** When the job was queued: the same in each attempt. */
  readonly queuedAt: Date;
}

/** Thrown by a handler when no further attempt can help: the job becomes a dead letter at once. */
export class UnrecoverableError extends Error {
  override readonly name = "UnrecoverableError";
}

/** How a queue is consumed. */
export interface ConsumeOptions {
  /** Jobs of this process under way at once. Default 1. */
  readonly concurrency?: number;
}

/** A queue being worked on. */
export interface Consuming {
  /** Takes no more jobs, then waits for those under way. */
  stop(): Promise<void>;
}

/**
 * Works on a queue, sharing its jobs with all replicas. A handler that rejects, or outlasts `attemptMs`, is tried
 * again after the declared waits; then, or at once after an `UnrecoverableError`, the job and its error are kept
 * as a dead letter, stored before the job is taken off the queue. A process that dies leaves its job to another;
 * deaths count as attempts.
 */
export async function consumeQueue<Q extends QueueDeclaration>(
  bus: Bus,
  queue: Q,
  handler: (job: z.output<Q["job"]>, attempt: Attempt) => Promise<void>,
  { concurrency = 1 }: ConsumeOptions = {},
): Promise<Consuming> {
  await ensureQueueStream(bus, queue.name);
  await ensureDeadLetterStream(bus, queue.name);
  await ensureWorker(bus, queue.name);
  const stopping = new AbortController();
  const workers = Array.from({ length: concurrency }, () => work(bus, queue, handler, stopping.signal));
  return {
    async stop() {
      stopping.abort();
      await Promise.all(workers);
    },
  };
}

async function ensureWorker(bus: Bus, queue: string): Promise<void> {
  await ensureConsumer(bus, queueStream(queue), {
    durable_name: queueConsumer,
    ack_policy: AckPolicy.Explicit,
    deliver_policy: DeliverPolicy.All,
    ack_wait: nanos(takeoverMs),
    max_deliver: -1,
  });
}

async function work<Q extends QueueDeclaration>(
  bus: Bus,
  queue: Q,
  handler: (job: z.output<Q["job"]>, attempt: Attempt) => Promise<void>,
  stopping: AbortSignal,
): Promise<void> {
  const puller: Puller = createPuller(bus, queueStream(queue.name), queueConsumer);
  try {
    while (!stopping.aborted && !bus.connection.isClosed()) {
      const { messages, failure } = await puller.pull({ batch: 1, expiresMs: pollMs }, stopping);
      for (const message of messages) await attempt(bus, queue, handler, message);
      if (failure !== null) await recover(bus, queue.name, failure, stopping);
    }
  } finally {
    puller.close();
  }
}

async function recover(bus: Bus, queue: string, failure: string, stopping: AbortSignal): Promise<void> {
  bus.log.warn({ queue, failure }, "the queue cannot be read");
  await systemClock.sleep(1_000, stopping).catch(() => undefined);
  if (failure !== "missing" || stopping.aborted) return;
  try {
    await ensureQueueStream(bus, queue);
    await ensureWorker(bus, queue);
  } catch (error) {
    bus.log.warn({ err: error, queue }, "the queue cannot be made");
  }
}

async function attempt<Q extends QueueDeclaration>(
  bus: Bus,
  queue: Q,
  handler: (job: z.output<Q["job"]>, attempt: Attempt) => Promise<void>,
  message: PulledMessage,
): Promise<void> {
  const number = message.deliveries;
  const allowed = queue.backoffMs.length + 1;
  const parent = parseTraceparent(message.headers?.get(traceHeader));
  const call = createCallContext({
    timeoutMs: queue.attemptMs,
    trace: parent === null ? startTrace() : childSpan(parent),
  });
  const alive = setInterval(() => message.extend(), takeoverMs / 3);
  try {
    if (number > allowed) throw new Error("the process ended during the last attempt");
    const job = queue.job.parse(JSON.parse(new TextDecoder().decode(message.payload))) as z.output<Q["job"]>;
    await within(
      call.signal,
      handler(job, {
        ...call,
        number,
        last: number === allowed,
        sequence: message.sequence,
        queuedAt: message.storedAt,
      }),
    );
    message.acknowledge();
    bus.metrics.jobAttempts.inc({ queue: queue.name, outcome: "ok" });
  } catch (error) {
    const fields = { err: error, queue: queue.name, sequence: message.sequence, attempt: number };
    if (number < allowed && !(error instanceof UnrecoverableError)) {
      bus.metrics.jobAttempts.inc({ queue: queue.name, outcome: "failed" });
      bus.log.warn(fields, "a job failed and will be tried again");
      message.reject(queue.backoffMs[number - 1] ?? 0);
    } else {
      await bury(bus, queue.name, message, error);
      bus.metrics.jobAttempts.inc({ queue: queue.name, outcome: "dead" });
      bus.log.error(fields, "a job was given up");
    }
  } finally {
    clearInterval(alive);
    call[Symbol.dispose]();
  }
}

/** Stores the dead letter, then takes the job off the queue; a crash between the two stores it once more under the same id. */
async function bury(bus: Bus, queue: string, message: PulledMessage, error: unknown): Promise<void> {
  const wire = headers();
  wire.set(errorHeader, headerText(error));
  wire.set(attemptsHeader, String(Math.min(message.deliveries, Number.MAX_SAFE_INTEGER)));
  try {
    await jetstream(bus.connection, { timeout: enqueueTimeoutMs }).publish(
      deadSubject(queue),
      message.payload,
      {
        headers: wire,
        msgID: `${message.storedAt.getTime()}-${message.sequence}`,
      },
    );
    message.acknowledge();
  } catch (cause) {
    bus.log.error({ err: cause, queue, sequence: message.sequence }, "a dead letter could not be stored");
    message.reject(takeoverMs);
  }
}

/** Error text that may stand in a header: one line, at most 1,000 characters. */
function headerText(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return (
    text
      .replace(/[^\x20-\x7e]+/g, " ")
      .trim()
      .slice(0, 1_000) || "unknown"
  );
}

function within<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    work.then(resolve, reject);
  });
}

/** A job that was given up. */
export interface DeadLetter<Q extends QueueDeclaration> {
  /** Names it in `retry`; ascending in the order in which jobs were given up. */
  readonly sequence: number;
  /** Null when it no longer matches the queue's schema. */
  readonly job: z.output<Q["job"]> | null;
  /** Text of the last attempt's error. */
  readonly error: string;
  readonly attempts: number;
  readonly failedAt: Date;
}

/** A part of the dead letters; `next` is the sequence after which the following part begins, null at the end. */
export interface DeadLetterPage<Q extends QueueDeclaration> {
  readonly letters: readonly DeadLetter<Q>[];
  readonly next: number | null;
}

/** A look into a queue, and what can be done about its dead letters. For the service that consumes it. */
export interface QueueOffice<Q extends QueueDeclaration> {
  /** Jobs waiting or under way, and dead letters kept. */
  count(): Promise<{ readonly pending: number; readonly dead: number }>;
  /** Dead letters, oldest first, after the one of sequence `after`. */
  listDeadLetters(options: { readonly after?: number; readonly limit: number }): Promise<DeadLetterPage<Q>>;
  /**
   * Queues a dead letter again and forgets it; false when there is none of that sequence. Twice is once, also at the same time.
   * Throws `unavailable` when it is not known to be queued, or still kept.
   */
  retryDeadLetter(sequence: number): Promise<boolean>;
}

/** Opens the office of a queue whose streams `consumeQueue` has made. */
export function createQueueOffice<Q extends QueueDeclaration>(bus: Bus, queue: Q): QueueOffice<Q> {
  const dead = deadLetterStream(queue.name);
  const stream = jetstream(bus.connection, { timeout: enqueueTimeoutMs });
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
        letters.push(deadLetter(queue, stored));
        from = stored.seq + 1;
      }
    },
    async retryDeadLetter(sequence) {
      const manager = await streamManager(bus);
      const find = () => nextMessage(manager.streams.getMessage(dead, { seq: sequence }));
      const stored = await find();
      if (stored === null) return false;
      try {
        await stream.publish(queueSubject(queue.name), stored.data, {
          msgID: `retry-${stored.time.getTime()}-${sequence}`,
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

function deadLetter<Q extends QueueDeclaration>(queue: Q, stored: StoredMsg): DeadLetter<Q> {
  let job: z.output<Q["job"]> | null = null;
  try {
    job = queue.job.parse(JSON.parse(stored.string())) as z.output<Q["job"]>;
  } catch {
    // Queued by an older release whose jobs looked otherwise: listed all the same, so that nothing is hidden.
  }
  return {
    sequence: stored.seq,
    job,
    error: stored.header.get(errorHeader),
    attempts: Number(stored.header.get(attemptsHeader)) || 0,
    failedAt: stored.time,
  };
}
