import type { devices } from "@devmesh/contracts/devices";
import type { keys } from "@devmesh/contracts/keys";
import type { mailer } from "@devmesh/contracts/mailer";
import { isJsonObject } from "@devmesh/contracts/model/json";
import { masterKey } from "@devmesh/contracts/rest/master-key";
import type { rpcBridge } from "@devmesh/contracts/rpc-bridge";
import type { CallContext } from "@devmesh/service-kit/context";
import type { Client } from "@devmesh/service-kit/implementation";
import type { AclPermissions } from "../auth/permission-cache.ts";
import { leadingString } from "../http/envelope.ts";
import { RequestRefused } from "../http/gateway-errors.ts";
import type { Handlers, Within } from "../http/handlers.ts";
import {
  joinPages,
  jsonArray,
  type ListPage,
  type ListPages,
  type PageRequest,
  pagesOf,
} from "../http/paged-list.ts";
import { json, noContent, type Reply } from "../http/reply.ts";
import { callDevice } from "./device-call.ts";
import { condition, taggedDevice } from "./tagged-device.ts";

/** What the master key API calls. */
export interface MasterKeyClients {
  readonly keys: Client<
    typeof keys,
    "listKeys" | "createKey" | "deleteKey" | "listCustomers" | "deleteCustomer"
  >;
  readonly devices: Client<
    typeof devices,
    | "listDevices"
    | "createDevice"
    | "readDevice"
    | "patchDevice"
    | "deleteDevice"
    | "readCredentials"
    | "rotateToken"
    | "rotatePublicKey"
  >;
  readonly "rpc-bridge": Client<typeof rpcBridge, "call">;
  readonly mailer: Client<typeof mailer, "listDeadMail" | "retryDeadMail">;
}

/** Time for one page of a list, in milliseconds. */
const pageMs = 10_000;

/** Most bytes of devices that are held to answer `limit` with one `Link`; a longer page ends early and leads on. */
const heldBytes = 8 * 1024 * 1024;

/** What the vendor does with a master key (api.md); each owner decides, the gateway passes on. */
export function masterKeyHandlers(
  clients: MasterKeyClients,
  permissions: AclPermissions,
): Handlers<Exclude<keyof typeof masterKey, "readMesh" | "readMqttAddress">> {
  const bridge = clients["rpc-bridge"];
  return {
    async listDevices({ query, within }) {
      const { limit, after, online, filter } = query;
      const selection = { ...(online !== undefined && { online }), ...(filter !== undefined && { filter }) };
      const pages = pagesOf(
        (page) =>
          within(pageMs, (call) =>
            clients.devices.bytes.listDevices({ ...selection, ...cursorOf(page) }, call),
          ),
        limit,
        after,
      );
      if (limit === undefined) return jsonArray(pages);
      return linkedPage(pages, {
        limit: String(limit),
        ...(filter !== undefined && { filter }),
        ...(online !== undefined && { online: String(online) }),
      });
    },

    async createDevice({ body, call }) {
      const bytes = await clients.devices.bytes.createDevice(body ?? {}, call);
      const id = leadingString(bytes, "id");
      return json(bytes, {
        status: 201,
        headers: { Location: masterKey.readDevice.path.replace(":id", id) },
      });
    },

    readDevice: async ({ params, principal, call }) =>
      taggedDevice(await clients.devices.bytes.readDevice({ id: params.id, principal }, call)),

    async patchDevice({ params, receivedBody, principal, header, call }) {
      // The owner checks the patch as it came: the same members can be a matter of rights for another key.
      if (!isJsonObject(receivedBody)) throw new RequestRefused("body_missing");
      const input = { id: params.id, principal, patch: receivedBody, ...condition(header("if-match")) };
      try {
        return taggedDevice(await clients.devices.bytes.patchDevice(input, call));
      } finally {
        // Who changed the ACL finds it changed at once; other gateways hear of it.
        permissions.forget(params.id);
      }
    },

    async deleteDevice({ params, call }) {
      await clients.devices.bytes.deleteDevice({ id: params.id }, call);
      return noContent;
    },

    readCredentials: async ({ params, call }) =>
      json(await clients.devices.bytes.readCredentials({ id: params.id }, call)),

    rotateToken: async ({ params, call }) =>
      json(await clients.devices.bytes.rotateToken({ id: params.id }, call)),

    rotatePublicKey: async ({ params, call }) =>
      json(await clients.devices.bytes.rotatePublicKey({ id: params.id }, call)),

    callFunction: ({ params, query, body, within }) =>
      callDevice(
        bridge,
        { device_id: params.id, method: params.func, params: body, timeout: query.timeout },
        within,
      ),

    callFunctionWithoutParams: ({ params, query, within }) =>
      callDevice(
        bridge,
        { device_id: params.id, method: params.func, params: undefined, timeout: query.timeout },
        within,
      ),

    listKeys: async ({ within }) => wholeList(clients.keys.bytes.listKeys, within),

    createKey: async ({ body, call }) =>
      json(await clients.keys.bytes.createKey(body ?? {}, call), { status: 201 }),

    async deleteKey({ params, call }) {
      await clients.keys.bytes.deleteKey({ id: params.id }, call);
      return noContent;
    },

    listCustomers: async ({ within }) => wholeList(clients.keys.bytes.listCustomers, within),

    async deleteCustomer({ params, call }) {
      await clients.keys.bytes.deleteCustomer({ customer_id: params.id }, call);
      return noContent;
    },

    listDeadMail: async ({ within }) => wholeList(clients.mailer.bytes.listDeadMail, within),

    async retryDeadMail({ params, call }) {
      await clients.mailer.bytes.retryDeadMail({ id: params.id }, call);
      return noContent;
    },
  };
}

type Cursor = { readonly limit?: number; readonly after?: string };

function cursorOf({ limit, after }: PageRequest): Cursor {
  return { ...(limit !== undefined && { limit }), ...(after !== undefined && { after }) };
}

function wholeList(
  list: (cursor: Cursor, call: CallContext) => Promise<Uint8Array>,
  within: Within,
): Promise<Reply> {
  const pages = pagesOf((page) => within(pageMs, (call) => list(cursorOf(page), call)), undefined);
  return jsonArray(pages);
}

/** A page of the device list with the `Link` to the next one; the selection goes along, a key never does. */
async function linkedPage(pages: ListPages, selection: Readonly<Record<string, string>>): Promise<Reply> {
  const held: ListPage[] = [];
  let bytes = 0;
  for await (const page of pages) {
    held.push(page);
    bytes += page.items.length;
    if (bytes >= heldBytes) break;
  }
  const body = joinPages(held);
  const next = held.at(-1)?.next ?? null;
  if (next === null) return json(body);
  const following = new URLSearchParams({ ...selection, after: next });
  return json(body, { headers: { Link: `<${masterKey.listDevices.path}?${following}>; rel="next"` } });
}
