import type { QueueDeclaration } from "@devmesh/contracts/contract";
import { jetstream } from "@nats-io/jetstream";
import { headers } from "@nats-io/nats-core";
import type { z } from "zod";
import { assertConnected, type Bus } from "../connection/bus.ts";
import { natsConnection } from "../connection/nats-connection.ts";
import { ensureQueueStream } from "../connection/streams.ts";
import { ServiceError } from "../errors.ts";
import type { CallContext } from "../rpc/context.ts";
import { queueSubject } from "../subjects.ts";
import { formatTraceparent, type TraceContext, traceHeader } from "../tracing/trace.ts";
import { messageSpan, recordSpan } from "../tracing/tracer.ts";

/** How long queueing waits for the stream's acknowledgement, in milliseconds. */
const enqueueTimeoutMs = 2_000;

/** What may go along with a job. */
export interface EnqueueOptions {
  /** A second job with the same id within an hour is not queued again. */
  readonly dedupeId?: string;
  /** The call that led to the job: its trace is passed on and its deadline bounds the wait. */
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
  const stream = jetstream(bus[natsConnection], { timeout: enqueueTimeoutMs });
  const span = messageSpan("producer", queue.name);

  async function send(
    job: z.input<Q["job"]>,
    { dedupeId, call }: EnqueueOptions,
    trace: TraceContext,
  ): Promise<void> {
    assertConnected(bus);
    const body = JSON.stringify(queue.job.parse(job));
    const wire = headers();
    wire.set(traceHeader, formatTraceparent(trace));
    try {
      await stream.publish(queueSubject(queue.name), body, {
        headers: wire,
        timeout: Math.max(1, Math.min(enqueueTimeoutMs, call?.deadline.remainingMs() ?? enqueueTimeoutMs)),
        ...(dedupeId === undefined ? {} : { msgID: dedupeId }),
      });
    } catch (cause) {
      throw ServiceError.of("unavailable", { cause });
    }
  }
  return {
    enqueue: (job, options = {}) =>
      recordSpan(bus.tracer, span, options.call?.trace, (trace) => send(job, options, trace)),
  };
}
