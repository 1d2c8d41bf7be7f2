import type { Json } from "@devmesh/contracts/model/json";
import { rpcBridge, rpcTimeout } from "@devmesh/contracts/rpc-bridge";
import { ServiceError } from "@devmesh/service-kit/errors";
import { onlyMember } from "../http/envelope.ts";
import type { GatewayClients, Within } from "../http/handlers.ts";
import { json, type Reply } from "../http/reply.ts";

/** Time that the bridge has beyond the device's timeout, in milliseconds. */
const travelMs = 250;
/**
 * Latest answer after the device's timeout, in milliseconds: api.md (RPC) promises 50. The bridge answers before,
 * unless it is overloaded or has crashed.
 */
const lateMs = 30;

interface DeviceCall {
  readonly device_id: string;
  readonly method: string;
  readonly params: Json | undefined;
  /** Milliseconds to wait for the device; undefined for the default. */
  readonly timeout: number | undefined;
}

/** Calls a function of a device and answers its bare result (api.md, RPC), as `shown` to the caller. */
export async function callDevice(
  bridge: GatewayClients["rpc-bridge"],
  { device_id, method, params, timeout = rpcTimeout.default }: DeviceCall,
  within: Within,
  shown: (result: Uint8Array) => Uint8Array = (result) => result,
): Promise<Reply> {
  const input = { device_id, method, timeout_ms: timeout, ...(params === undefined ? {} : { params }) };
  return within(timeout + travelMs, async (call) => {
    const late = Promise.withResolvers<never>();
    const cancel = call.deadline.clock.schedule(timeout + lateMs, () => {
      const { code, when } = rpcBridge.methods.call.errors.rpc_timeout;
      late.reject(new ServiceError({ code, reason: "rpc_timeout", message: when }));
    });
    try {
      const answer = await Promise.race([bridge.bytes.call(input, call), late.promise]);
      return json(shown(onlyMember(answer, "result")));
    } finally {
      cancel();
    }
  });
}

/** The condition of a write, as `devices.patchDevice` takes it. */
export function condition(ifMatch: string | undefined): { readonly if_match?: string } {
  return ifMatch === undefined ? {} : { if_match: ifMatch };
}
