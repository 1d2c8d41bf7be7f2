import { rpcTimeout } from "@devmesh/contracts/model/action";
import { lengthOf } from "@devmesh/contracts/model/duration";
import type { Creator } from "@devmesh/contracts/model/execution";
import type { Json } from "@devmesh/contracts/model/json";
import { deviceAccess } from "@devmesh/contracts/rest/device-access";
import { masterKey } from "@devmesh/contracts/rest/master-key";
import { rpcBridge } from "@devmesh/contracts/rpc-bridge";
import { ServiceError } from "@devmesh/service-kit/errors";
import type { CallContext } from "@devmesh/service-kit/rpc/context";
import type { PermissionCache } from "../auth/permission-cache.ts";
import { json, type Reply, type Within } from "../http/exchange.ts";
import { leadingString, onlyMember } from "../http/json-bytes.ts";
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

/** Calls a function of a device and answers its bare result (api.md, RPC). */
async function callDevice(
  bridge: BridgeClient,
  { device_id, method, params, timeout = rpcTimeout.default }: DeviceCall,
  within: Within,
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
      return json(onlyMember(answer, "result"));
    } finally {
      cancel();
    }
  });
}

/** Stores a call that waits for its device (api.md, Work for devices). */
async function storeCall(
  jobs: GatewayClients["jobs"],
  { device_id, method, params, timeout = rpcTimeout.default }: DeviceCall,
  { wait, attempts }: { readonly wait: string; readonly attempts: number | undefined },
  { kind, key_id, path, call }: Creator & { readonly path: string; readonly call: CallContext },
): Promise<Reply> {
  const input = {
    device_id,
    func: method,
    ...(params === undefined ? {} : { params }),
    wait_ms: lengthOf(wait),
    attempts: attempts ?? 1,
    timeout_ms: timeout,
    created_by: { kind, key_id },
  };
  const bytes = await jobs.bytes.createCall(input, call);
  const headers = { Location: path.replace(":id", leadingString(bytes, "id")) };
  return json(bytes, { status: 202, headers });
}

/** Operations that call a device. */
export type RpcOperation = "callFunction" | "callFunctionWithoutParams" | "callOwnFunction";

/** Calls of a device's functions: any of them with a master key, those of its ACL with its public key (api.md, RPC). */
export function rpcHandlers(
  { devices, jobs, "rpc-bridge": bridge }: GatewayClients,
  permissions: PermissionCache,
): Handlers<RpcOperation> {
  return {
    async callFunction({ params, query, body, keyId = "", call, within }) {
      const { timeout, wait, attempts } = query;
      const asked = { device_id: params.id, method: params.func, params: body, timeout };
      if (wait === undefined) return callDevice(bridge, asked, within);
      const by = { kind: "master", key_id: keyId, path: masterKey.readExecution.path, call } as const;
      return storeCall(jobs, asked, { wait, attempts }, by);
    },

    callFunctionWithoutParams: ({ params, query, within }) =>
      callDevice(
        bridge,
        { device_id: params.id, method: params.func, params: undefined, timeout: query.timeout },
        within,
      ),

    async callOwnFunction({ params: { func }, query, body, principal, keyId = "", call, within }) {
      const id = principal.device_id;
      await permissions.get(id, `rpc ${func}`, () =>
        devices.authorize({ id, action: { kind: "rpc", func } }, call),
      );
      const { timeout, wait, attempts } = query;
      const asked = { device_id: id, method: func, params: body, timeout };
      if (wait === undefined) return callDevice(bridge, asked, within);
      const by = {
        kind: "public_key",
        key_id: keyId,
        path: deviceAccess.readOwnExecution.path,
        call,
      } as const;
      return storeCall(jobs, asked, { wait, attempts }, by);
    },
  };
}
