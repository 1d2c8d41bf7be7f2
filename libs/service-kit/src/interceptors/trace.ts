import type { Interceptor } from "../interceptor.ts";
import { childSpan, parseTraceparent, startTrace, traceHeader } from "../trace.ts";

/** Continues the caller's trace (W3C Trace Context) with a span of its own, or starts one. */
export function continueTrace(): Interceptor {
  return (next) => (call) => {
    const parent = parseTraceparent(call.header(traceHeader));
    return next({ ...call, header: call.header, trace: parent === null ? startTrace() : childSpan(parent) });
  };
}
