import { ServiceError } from "../errors.ts";
import type { IncomingCall, Interceptor } from "../interceptor.ts";
import { requestIdHeader } from "../trace.ts";

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
    trace_id: call.trace?.traceId,
    span_id: call.trace?.spanId,
    request_id: call.header(requestIdHeader),
  };
}
