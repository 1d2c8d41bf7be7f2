import type { QueueDeclaration } from "@devmesh/contracts/contract";
import type { z } from "zod";
import type { Bus } from "../connection/bus.ts";
import { ensureQueueStream, storeMessage } from "../connection/streams.ts";
import type { CallContext } from "../rpc/context.ts";
import { queueSubject } from "../subjects.ts";
import { traceHeaders } from "../tracing/trace.ts";
import { messageSpan, recordSpan } from "../tracing/tracer.ts";

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
  const span = messageSpan("producer", queue.name);

  return {
    enqueue: (job, { dedupeId, call } = {}) =>
      recordSpan(bus.tracer, span, call?.trace, async (trace) => {
        const body = JSON.stringify(queue.job.parse(job));
        const headers = traceHeaders(trace);
        const timeoutMs = call?.deadline.remainingMs();
        await storeMessage(bus, queueSubject(queue.name), body, { headers, dedupeId, timeoutMs });
      }),
  };
}
