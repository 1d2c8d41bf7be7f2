import type { Json } from "@devmesh/contracts/model/json";
import { type rpcBridge, rpcTimeout } from "@devmesh/contracts/rpc-bridge";
import type { Client } from "@devmesh/service-kit/implementation";
import { onlyMember } from "./envelope.ts";
import type { Within } from "./handlers.ts";
import { json, type Reply } from "./reply.ts";

/** How much longer than the device's time a call may take, in milliseconds: the way to the bridge and back. */
const travelMs = 250;

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
  return within(timeout + travelMs, async (call) =>
    json(onlyMember(await bridge.bytes.call(input, call), "result")),
  );
}
