import { redactSecrets } from "@devmesh/contracts/model/api-key";
import type { Json } from "@devmesh/contracts/model/json";
import type { KeyKind } from "@devmesh/contracts/principal";
import { rpcBridge, rpcTimeout } from "@devmesh/contracts/rpc-bridge";
import { ServiceError } from "@devmesh/service-kit/errors";
import type { PermissionCache } from "../auth/permission-cache.ts";
import { json, type Reply, type Within } from "../http/exchange.ts";
import { onlyMember } from "../http/json-bytes.ts";
import type { GatewayClients, Handlers } from "./handlers.ts";

/** Time that the bridge has beyond the device's timeout, in milliseconds. */
const travelMs = 250;
/**
 * Latest answer after the device's timeout, in milliseconds: api.md (RPC) promises 50. The bridge answers before,
 * unless it is overloaded or has crashed.
 */
const lateMs = 30;

type BridgeClient = GatewayClients["rpc-bridge"];

interface DeviceCall {
  readonly device_id: string;
  readonly method: string;
  readonly params: Json | undefined;
  /** Milliseconds to wait for the device; undefined for the default. */
  readonly timeout: number | undefined;
}

/** Calls a function of a device and answers its bare result (api.md, RPC), as `shown` to the caller. */
async function callDevice(
  bridge: BridgeClient,
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

/** Operations that call a device. */
export type RpcOperation = "callFunction" | "callFunctionWithoutParams" | "callOwnFunction";

/** Calls of a device's functions: any of them with a master key, those of its ACL with its public key (api.md, RPC). */
export function rpcHandlers(
  { devices, "rpc-bridge": bridge }: GatewayClients,
  permissions: PermissionCache,
): Handlers<RpcOperation> {
  return {
    callFunction: ({ params, query, body, keyKind, within }) =>
      callDevice(
        bridge,
        { device_id: params.id, method: params.func, params: body, timeout: query.timeout },
        within,
        shownTo(keyKind),
      ),

    callFunctionWithoutParams: ({ params, query, keyKind, within }) =>
      callDevice(
        bridge,
        { device_id: params.id, method: params.func, params: undefined, timeout: query.timeout },
        within,
        shownTo(keyKind),
      ),

    async callOwnFunction({ params: { func }, query, body, principal, call, within }) {
      const id = principal.device_id;
      await permissions.get(id, `rpc ${func}`, () =>
        devices.authorize({ id, action: { kind: "rpc", func } }, call),
      );
      return callDevice(
        bridge,
        { device_id: id, method: func, params: body, timeout: query.timeout },
        within,
      );
    },
  };
}

/**
 * What a caller gets of bytes that may hold secrets by chance: applications store public keys of devices in what they
 * keep of a customer, and a device may answer a call with its configuration.
 */
export function shownTo(keyKind: KeyKind | "none"): (bytes: Uint8Array) => Uint8Array {
  if (keyKind === "master") return (bytes) => bytes;
  return (bytes) => Buffer.from(redactSecrets(Buffer.from(bytes).toString("utf8")));
}
