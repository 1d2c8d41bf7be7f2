import type { ContractDeclaration } from "@devmesh/contracts/contract";
import { ServiceError } from "../errors.ts";
import type { Logger } from "../logger.ts";
import type { Metrics } from "../metrics.ts";
import {
  continueTrace,
  requestIdHeader,
  type TraceContext,
  traceFields,
  traceHeader,
} from "../tracing/trace.ts";
import { callSpan, recordReceived, type Tracer } from "../tracing/tracer.ts";

/** A call as it arrived: nothing of it has been checked yet. */
export interface IncomingCall {
  readonly contract: ContractDeclaration;
  readonly method: string;
  /** The input, JSON in UTF-8. */
  readonly payload: Uint8Array;
  /** Value of a header; undefined when it is missing or empty. */
  header(name: string): string | undefined;
  readonly log: Logger;
  /** Set by the trace interceptor; a call without one starts its own trace. */
  readonly trace?: TraceContext;
}

/** Answers a call with JSON; throws `ServiceError` only. */
export type CallHandler = (call: IncomingCall) => Promise<string>;

/** Wraps the whole of a call: parsing, deadline, handler and check of the answer are all inside. */
export type Interceptor = (next: CallHandler) => CallHandler;

/** Continues the caller's trace (W3C Trace Context) with a span, or starts one. */
export function traceCalls(tracer?: Tracer): Interceptor {
  return (next) => (call) => {
    const traceparent = call.header(traceHeader);
    const answer = (trace: TraceContext) => next({ ...call, header: call.header, trace });
    if (tracer === undefined) return answer(continueTrace(traceparent));
    return recordReceived(tracer, callSpan("server", call.contract, call.method), traceparent, answer);
  };
}

/** Measures each call by its outcome, timed-out and refused ones included. */
export function measureCalls({ callSeconds, callsRunning }: Metrics): Interceptor {
  return (next) => async (call) => {
    const { service } = call.contract;
    const startedAt = performance.now();
    let code = "ok";
    callsRunning.inc({ service });
    try {
      return await next(call);
    } catch (error) {
      code = ServiceError.from(error).code;
      throw error;
    } finally {
      callsRunning.dec({ service });
      callSeconds.observe({ service, method: call.method, code }, (performance.now() - startedAt) / 1000);
    }
  };
}

/**
 * Logs each call: replies and declared errors at `debug`, undelivered calls at `warn`, internal errors at `error`.
 * Inputs and replies are never logged.
 */
export function logCalls(): Interceptor {
  return (next) => async (call) => {
    const startedAt = performance.now();
    try {
      const answer = await next(call);
      if (call.log.isLevelEnabled("debug"))
        call.log.debug({ ...fieldsOf(call, startedAt), code: "ok" }, "call");
      return answer;
    } catch (error) {
      const failure = ServiceError.from(error);
      const { code, reason } = failure;
      const fields = { ...fieldsOf(call, startedAt), code, reason };
      if (code !== "unavailable" && isDeclared(call, reason)) call.log.debug(fields, "call");
      else if (code === "internal")
        call.log.error({ ...fields, err: failure.cause ?? failure }, "call failed");
      else if (code === "unavailable" || code === "deadline_exceeded")
        call.log.warn(
          failure.cause === undefined ? fields : { ...fields, err: failure.cause },
          "call failed",
        );
      else call.log.debug(fields, "call");
      throw error;
    }
  };
}

function isDeclared({ contract, method }: IncomingCall, reason: string): boolean {
  return Object.hasOwn(contract.methods[method]?.errors ?? {}, reason);
}

function fieldsOf(call: IncomingCall, startedAt: number): Record<string, unknown> {
  return {
    method: call.method,
    ms: Math.round((performance.now() - startedAt) * 10) / 10,
    ...(call.trace === undefined ? {} : traceFields(call.trace)),
    request_id: call.header(requestIdHeader),
  };
}
