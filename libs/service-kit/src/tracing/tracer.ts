import type { ContractDeclaration } from "@devmesh/contracts/contract";
import { ServiceError } from "../errors.ts";
import { continueTrace, parseTraceparent, startTrace, type TraceContext } from "./trace.ts";

/** Names and values after OpenTelemetry's semantic conventions. Never a secret, an address, a payload or a query. */
export type SpanAttributes = Readonly<Record<string, string | number>>;

/** What all spans of one kind of work have in common. */
export interface SpanDescription {
  /** Of few different values: no ids. */
  readonly name: string;
  readonly kind: "server" | "client" | "producer" | "consumer";
  readonly attributes: SpanAttributes;
  /** What an error says about the work. Default: that it failed, with the error's reason or name. */
  readonly endOf?: (error: unknown) => SpanEnd;
}

/** How the work of a span ended. */
export interface SpanEnd {
  readonly attributes?: SpanAttributes;
  /** `error.type` of work that failed; of few different values. */
  readonly errorType?: string;
}

/** A span whose work goes on. */
export interface OpenSpan {
  /** Its position, to be passed on. */
  readonly trace: TraceContext;
  end(result?: SpanEnd): void;
}

/** Records spans and exports them. A process has one only when it is configured (`openTracer`). */
export interface Tracer {
  /** The span whose work runs now (`run`). */
  readonly active: TraceContext | undefined;
  /** Begins a span below `parent`; by default below `active`, else it begins a trace. */
  startSpan(description: SpanDescription, parent?: TraceContext): OpenSpan;
  /** Runs work, during which the span is `active`. */
  run<T>(span: OpenSpan, work: () => T): T;
  /** Exports what waits. Never rejects, and ends within two seconds, also when the collector does not answer. */
  close(): Promise<void>;
}

/** Runs `work` as a span below `parent`. It gets the position to pass on: without a tracer, that of `parent`. */
export function recordSpan<T>(
  tracer: Tracer | undefined,
  description: SpanDescription,
  parent: TraceContext | undefined,
  work: (trace: TraceContext) => Promise<T>,
): Promise<T> {
  if (tracer === undefined) return work(parent ?? startTrace());
  return runSpan(tracer, tracer.startSpan(description, parent), description, work);
}

/** {@link recordSpan} for what arrived with a `traceparent`: without a tracer, `work` gets a new position. */
export function recordReceived<T>(
  tracer: Tracer | undefined,
  description: SpanDescription,
  traceparent: string | undefined,
  work: (trace: TraceContext) => Promise<T>,
): Promise<T> {
  if (tracer === undefined) return work(continueTrace(traceparent));
  return runSpan(tracer, startReceivedSpan(tracer, description, traceparent), description, work);
}

/** Begins a span in the trace of a received `traceparent`, or in a new one. */
export function startReceivedSpan(
  tracer: Tracer,
  description: SpanDescription,
  traceparent: string | undefined,
): OpenSpan {
  return tracer.startSpan(description, parseTraceparent(traceparent) ?? undefined);
}

async function runSpan<T>(
  tracer: Tracer,
  span: OpenSpan,
  { endOf = failure }: SpanDescription,
  work: (trace: TraceContext) => Promise<T>,
): Promise<T> {
  try {
    const result = await tracer.run(span, () => work(span.trace));
    span.end();
    return result;
  } catch (error) {
    span.end(endOf(error));
    throw error;
  }
}

function failure(error: unknown): SpanEnd {
  if (error instanceof ServiceError) return { errorType: error.reason };
  return { errorType: error instanceof Error ? error.name : "_OTHER" };
}

/** What is recorded of a call between services, on either side. */
export function callSpan(
  kind: "client" | "server",
  { service }: ContractDeclaration,
  method: string,
): SpanDescription {
  const name = `${service}/${method}`;
  return { name, kind, attributes: { "rpc.system.name": "nats", "rpc.method": name }, endOf: endOfCall };
}

/** What a caller did wrong, or asked for in vain, is no failure of the call. */
function endOfCall(error: unknown): SpanEnd {
  const { code, reason } = ServiceError.from(error);
  const failed = code === "internal" || code === "unavailable" || code === "deadline_exceeded";
  const attributes = { "rpc.response.status_code": code };
  return failed ? { attributes, errorType: reason } : { attributes };
}

/** What is recorded of a message that is sent or handled; `destination` is the name of the event or the queue. */
export function messageSpan(kind: "producer" | "consumer", destination: string): SpanDescription {
  const operation = kind === "producer" ? "send" : "process";
  return {
    name: `${operation} ${destination}`,
    kind,
    attributes: {
      "messaging.system": "nats",
      "messaging.operation.name": operation,
      "messaging.operation.type": operation,
      "messaging.destination.name": destination,
    },
  };
}
