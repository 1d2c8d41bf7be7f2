import type { data } from "@devmesh/contracts/data";
import type { devices } from "@devmesh/contracts/devices";
import type { deviceAccess } from "@devmesh/contracts/rest/device-access";
import type { rpcBridge } from "@devmesh/contracts/rpc-bridge";
import type { Clock } from "@devmesh/service-kit/clock";
import { ServiceError } from "@devmesh/service-kit/errors";
import type { Client } from "@devmesh/service-kit/implementation";
import type { AclPermissions } from "../auth/permission-cache.ts";
import type { Handlers } from "../http/handlers.ts";
import { jsonArray } from "../http/paged-list.ts";
import { callDevice } from "./device-call.ts";
import { recordPages } from "./record-pages.ts";
import { narrowQuery } from "./record-query.ts";
import { bareDevice, condition } from "./tagged-device.ts";

/** What the device access API calls. */
export interface DeviceAccessClients {
  readonly devices: Client<typeof devices, "readDevice" | "patchDevice" | "authorize">;
  readonly data: Client<typeof data, "queryRecords">;
  readonly "rpc-bridge": Client<typeof rpcBridge, "call">;
}

/**
 * What a device's public key is good for (api.md, Device public key and the ACL). What the ACL covers is decided by
 * `devices`; its word on functions and queries is remembered in `permissions`.
 */
export function deviceAccessHandlers(
  clients: DeviceAccessClients,
  permissions: AclPermissions,
  clock: Clock,
): Handlers<keyof typeof deviceAccess> {
  return {
    readOwnDevice: async ({ principal, call }) =>
      bareDevice(await clients.devices.bytes.readDevice({ id: principal.device_id, principal }, call)),

    patchOwnDevice: async ({ principal, body, header, call }) =>
      bareDevice(
        await clients.devices.bytes.patchDevice(
          { id: principal.device_id, principal, patch: body, ...condition(header("if-match")) },
          call,
        ),
      ),

    async runNamedQuery({ params: { name }, query: wishes, principal, keyId: caller, call, within }) {
      const id = principal.device_id;
      const query = await permissions.get(id, `query ${name}`, async () => {
        const answer = await clients.devices.authorize({ id, action: { kind: "query", name } }, call);
        return answer.query;
      });
      if (query === null)
        throw ServiceError.of("internal", { cause: new Error("a query was permitted but not told") });
      const narrowed = narrowQuery(query, wishes, clock.now());
      const { skip, until } = wishes;
      return jsonArray(recordPages(clients.data, { principal, caller, ...narrowed, skip, until }, within));
    },

    async callOwnFunction({ params: { func }, query, body, principal, call, within }) {
      const id = principal.device_id;
      await permissions.get(id, `rpc ${func}`, async () => {
        await clients.devices.authorize({ id, action: { kind: "rpc", func } }, call);
        return null;
      });
      return callDevice(
        clients["rpc-bridge"],
        { device_id: id, method: func, params: body, timeout: query.timeout },
        within,
      );
    },
  };
}
