import { ServiceError } from "../errors.ts";
import type { Interceptor } from "../interceptor.ts";
import type { Metrics } from "../metrics.ts";

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
