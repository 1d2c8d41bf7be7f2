import type { Json } from "@devmesh/contracts/model/json";
import { rpcBridge, rpcTimeout } from "@devmesh/contracts/rpc-bridge";
import { ServiceError } from "@devmesh/service-kit/errors";
import type { Client } from "@devmesh/service-kit/implementation";
import { onlyMember } from "../http/envelope.ts";
import type { Within } from "../http/handlers.ts";
import { json, type Reply } from "../http/reply.ts";

/**
 * How much longer than the device's time the bridge may take, in milliseconds; after it, nobody waits for an answer.
 */
const travelMs = 250;
/**
 * How long after the device's time the caller is answered at the latest, in milliseconds: sooner than the 50 that are
 * promised (api.md, RPC). The bridge's own word is there before, unless it is overloaded or has crashed.
 */
const lateMs = 30;

/** A call of a device's function, and the request it is made for. */
export interface DeviceCall {
  readonly device_id: string;
  readonly method: string;
  readonly params: Json | undefined;
  /** Milliseconds to wait for the device; the default where the caller named none. */
  readonly timeout: number | undefined;
}

/** Calls the function and answers its bare result (api.md, RPC). */
export async function callDevice(
  bridge: Client<typeof rpcBridge, "call">,
  { device_id, method, params, timeout = rpcTimeout.default }: DeviceCall,
  within: Within,
): Promise<Reply> {
  const input = { device_id, method, timeout_ms: timeout, ...(params === undefined ? {} : { params }) };
  return within(timeout + travelMs, async (call) => {
    const late = Promise.withResolvers<never>();
    const cancel = call.deadline.clock.schedule(timeout + lateMs, () => late.reject(timedOut()));
    try {
      const answer = await Promise.race([bridge.bytes.call(input, call), late.promise]);
      return json(onlyMember(answer, "result"));
    } finally {
      cancel();
    }
  });
}

function timedOut(): ServiceError {
  const { code, when } = rpcBridge.methods.call.errors.rpc_timeout;
  return new ServiceError({ code, reason: "rpc_timeout", message: when });
}
