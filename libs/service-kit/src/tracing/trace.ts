import { randomFillSync } from "node:crypto";
import { headers, type MsgHdrs } from "@nats-io/nats-core";

/** Header of W3C Trace Context, the same in HTTP and NATS. */
export const traceHeader = "traceparent";

/** Header that carries the request id through the mesh (api.md, Conventions). */
export const requestIdHeader = "Mesh-Request-Id";

/** Position of a call in a trace (W3C Trace Context, level 1). */
export interface TraceContext {
  /** 32 lower-case hex digits, the same in the whole trace. */
  readonly traceId: string;
  /** 16 lower-case hex digits, this span's own. */
  readonly spanId: string;
  /** Whether a collector should keep it; passed on as received. */
  readonly sampled: boolean;
  /** True where the trace begins here: no span has this id, so none is recorded below it. */
  readonly isStart?: true;
}

const traceparent = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/** Reads a `traceparent`; null for anything the specification calls invalid, which starts a new trace. */
export function parseTraceparent(header: string | undefined): TraceContext | null {
  const match = header === undefined ? null : traceparent.exec(header);
  if (match === null) return null;
  const [, version, traceId = "", spanId = "", flags = "", more] = match;
  if (version === "ff" || (version === "00" && more !== undefined)) return null;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return null;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

/** The header that hands a trace on. */
export function formatTraceparent({ traceId, spanId, sampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`;
}

/** Headers of a message that hands a trace on. */
export function traceHeaders(trace: TraceContext): MsgHdrs {
  const wire = headers();
  wire.set(traceHeader, formatTraceparent(trace));
  return wire;
}

/** A new trace. */
export function startTrace(): TraceContext {
  return { traceId: newTraceId(), spanId: newSpanId(), sampled: true, isStart: true };
}

/** A span below `parent`, in its trace. */
export function childSpan({ traceId, sampled }: TraceContext): TraceContext {
  return { traceId, spanId: newSpanId(), sampled };
}

/** A new span in the trace of a received `traceparent`, or in a new one. */
export function continueTrace(header: string | undefined): TraceContext {
  const parent = parseTraceparent(header);
  return parent === null ? startTrace() : childSpan(parent);
}

/** The members of a log line that lead to its trace. */
export function traceFields({ traceId, spanId }: TraceContext): { trace_id: string; span_id: string } {
  return { trace_id: traceId, span_id: spanId };
}

/** 32 random hex digits. */
export const newTraceId = (): string => randomHex(16);

/** 16 random hex digits. */
export const newSpanId = (): string => randomHex(8);

const pool = Buffer.alloc(4_096);
let drawn = pool.length;

/** From a pool: asking the system for the few bytes of each call took an eighth of a call's whole cost. */
function randomHex(bytes: number): string {
  if (drawn + bytes > pool.length) {
    randomFillSync(pool);
    drawn = 0;
  }
  drawn += bytes;
  return pool.toString("hex", drawn - bytes, drawn);
}
