import type { QueueDeclaration } from "@devmesh/contracts/contract";
import { AckPolicy, DeliverPolicy } from "@nats-io/jetstream";
import { nanos } from "@nats-io/nats-core";
import type { z } from "zod";
import { systemClock } from "../clock.ts";
import type { Bus } from "../connection/bus.ts";
import { natsConnection } from "../connection/nats-connection.ts";
import { createPuller, type PulledMessage, type PullFailure } from "../connection/pull.ts";
import { ensureConsumer, ensureDeadLetterStream, ensureQueueStream } from "../connection/streams.ts";
import { type CallContext, createCallContext, untilAborted } from "../rpc/context.ts";
import { setNewest } from "../set-newest.ts";
import { queueConsumer, queueStream } from "../subjects.ts";
import { type TraceContext, traceFields, traceHeader } from "../tracing/trace.ts";
import { messageSpan, recordReceived } from "../tracing/tracer.ts";
import { parseJob, storeDeadLetter } from "./dead-letter.ts";

/** After this long without a sign of life, another replica takes a job over; in milliseconds. */
const takeoverMs = 10_000;
/** Longest wait of one request for a job, in milliseconds. */
const pollMs = 5_000;

/** How many finished jobs are remembered; the oldest are forgotten first. */
const rememberedJobs = 1_000;

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

/** Thrown by a handler to make the job a dead letter at once. */
export class UnrecoverableError extends Error {
  override readonly name = "UnrecoverableError";
}

/** How a queue is consumed. */
export interface ConsumeOptions {
  /** Concurrent jobs of this process. Default 1. */
  readonly concurrency?: number;
}

/** A queue being worked on. */
export interface QueueWorker {
  /** Takes no more jobs, then waits for those under way. */
  stop(): Promise<void>;
}

/**
 * Works on a queue, sharing its jobs with all replicas. A handler that rejects or exceeds `attemptMs` is retried after
 * the declared waits; then, or after an `UnrecoverableError`, the job becomes a dead letter, stored before it leaves
 * the queue. Another replica takes over the job of a process that dies; that counts as an attempt.
 */
export async function consumeQueue<Q extends QueueDeclaration>(
  bus: Bus,
  queue: Q,
  handler: (job: z.output<Q["job"]>, attempt: Attempt) => Promise<void>,
  { concurrency = 1 }: ConsumeOptions = {},
): Promise<QueueWorker> {
  const { name, attemptMs, backoffMs } = queue;
  const stopping = new AbortController();
  const span = messageSpan("consumer", name);
  // A broker that missed the acknowledgement of a job delivers it again.
  const underWay = new Set<string>();
  const finished = new Map<string, true>();

  async function ensureQueue(): Promise<void> {
    await ensureQueueStream(bus, name);
    await ensureConsumer(bus, queueStream(name), {
      durable_name: queueConsumer,
      ack_policy: AckPolicy.Explicit,
      deliver_policy: DeliverPolicy.All,
      ack_wait: nanos(takeoverMs),
      max_deliver: -1,
    });
  }

  async function work(): Promise<void> {
    const puller = createPuller(bus, queueStream(name), queueConsumer);
    try {
      while (!stopping.signal.aborted && !bus[natsConnection].isClosed()) {
        const { messages, failure } = await puller.pull({ batch: 1, expiresMs: pollMs }, stopping.signal);
        for (const message of messages) await take(message);
        if (failure !== null) await recover(failure);
      }
    } finally {
      puller.close();
    }
  }

  async function recover(failure: PullFailure): Promise<void> {
    bus.log.warn({ queue: name, failure }, "the queue cannot be read");
    await systemClock.sleep(1_000, stopping.signal).catch(() => undefined);
    if (failure !== "missing" || stopping.signal.aborted) return;
    await ensureQueue().catch((error: unknown) =>
      bus.log.warn({ err: error, queue: name }, "the queue cannot be made"),
    );
  }

  /** Attempts a job, unless this process is at it or has finished it. */
  async function take(message: PulledMessage): Promise<void> {
    // The time distinguishes queues of the same name.
    const id = `${message.storedAt.getTime()}-${message.sequence}`;
    if (finished.has(id)) return message.acknowledge();
    if (underWay.has(id)) return message.reject(takeoverMs);
    underWay.add(id);
    try {
      if (await attempt(message)) setNewest(finished, id, true, rememberedJobs);
    } finally {
      underWay.delete(id);
    }
  }

  /** Whether the job is off the queue: done, or a dead letter. */
  async function attempt(message: PulledMessage): Promise<boolean> {
    const { deliveries: number, sequence, storedAt: queuedAt } = message;
    const allowed = backoffMs.length + 1;
    let trace: TraceContext | undefined;
    const alive = setInterval(() => message.extend(), takeoverMs / 3);
    try {
      await recordReceived(bus.tracer, span, message.headers?.get(traceHeader), async (own) => {
        trace = own;
        if (number > allowed) throw new Error("the process ended during the last attempt");
        const job = parseJob(queue, message.payload);
        using call = createCallContext({ timeoutMs: attemptMs, trace });
        await untilAborted(call.signal, () =>
          handler(job, { ...call, number, last: number === allowed, sequence, queuedAt }),
        );
      });
      message.acknowledge();
      bus.metrics.jobAttempts.inc({ queue: name, outcome: "ok" });
      return true;
    } catch (error) {
      const fields = { err: error, queue: name, sequence, attempt: number, ...(trace && traceFields(trace)) };
      if (number < allowed && !(error instanceof UnrecoverableError)) {
        bus.metrics.jobAttempts.inc({ queue: name, outcome: "failed" });
        bus.log.warn(fields, "a job failed and will be tried again");
        message.reject(backoffMs[number - 1] ?? 0);
        return false;
      }
      const buried = await bury(message, error);
      bus.metrics.jobAttempts.inc({ queue: name, outcome: "dead" });
      bus.log.error(fields, "a job was given up");
      return buried;
    } finally {
      clearInterval(alive);
    }
  }

  /**
   * Stores the dead letter, then acknowledges the job; a crash between the two repeats both. False when either is
   * uncertain.
   */
  async function bury(message: PulledMessage, error: unknown): Promise<boolean> {
    try {
      await storeDeadLetter(bus, name, message, error);
      message.acknowledge();
      return true;
    } catch (cause) {
      const { sequence } = message;
      bus.log.error({ err: cause, queue: name, sequence }, "a dead letter could not be stored");
      message.reject(takeoverMs);
      return false;
    }
  }

  await ensureDeadLetterStream(bus, name);
  await ensureQueue();
  const workers = Array.from({ length: concurrency }, work);
  return {
    async stop() {
      stopping.abort();
      await Promise.all(workers);
    },
  };
}
