import { isJsonObject } from "@devmesh/contracts/model/json";
import { masterKey } from "@devmesh/contracts/rest/master-key";
import type { CallContext } from "@devmesh/service-kit/context";
import type { PermissionCache } from "../auth/permission-cache.ts";
import { leadingString, openEnvelope } from "../http/envelope.ts";
import { RequestRefused } from "../http/gateway-errors.ts";
import type { GatewayClients, Handlers, Within } from "../http/handlers.ts";
import {
  joinPages,
  jsonArray,
  type ListPage,
  type ListPages,
  type PageRequest,
  pagesOf,
} from "../http/paged-list.ts";
import { json, noContent, type Reply } from "../http/reply.ts";
import { callDevice, condition } from "./device-call.ts";
import { mqttAddressOf } from "./mqtt-address.ts";

/** Timeout for one page of a list, in milliseconds. */
const pageMs = 10_000;

/** Most bytes of devices held for the `Link` of a page; a longer page ends early. */
const heldBytes = 8 * 1024 * 1024;

/** The master key API (api.md), except the state of the mesh. */
export function masterKeyHandlers(
  { devices, keys, mailer, "rpc-bridge": bridge }: GatewayClients,
  permissions: PermissionCache,
  mqttPublicUrl: string | undefined,
): Handlers<Exclude<keyof typeof masterKey, "readMesh">> {
  const mqttAddress = JSON.stringify(mqttAddressOf(mqttPublicUrl));
  return {
    readMqttAddress: async () => json(mqttAddress),

    async listDevices({ query, within }) {
      const { limit, after, online, filter } = query;
      const selection = { ...(online !== undefined && { online }), ...(filter !== undefined && { filter }) };
      const pages = pagesOf(
        (page) => within(pageMs, (call) => devices.bytes.listDevices({ ...selection, ...page }, call)),
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
      const bytes = await devices.bytes.createDevice(body ?? {}, call);
      const id = leadingString(bytes, "id");
      return json(bytes, {
        status: 201,
        headers: { Location: masterKey.readDevice.path.replace(":id", id) },
      });
    },

    readDevice: async ({ params, principal, call }) =>
      taggedDevice(await devices.bytes.readDevice({ id: params.id, principal }, call)),

    async patchDevice({ params, receivedBody, principal, header, call }) {
      // `devices` checks the patch as received: for other keys a foreign member is a matter of rights.
      if (!isJsonObject(receivedBody)) throw new RequestRefused("body_missing");
      const input = { id: params.id, principal, patch: receivedBody, ...condition(header("if-match")) };
      try {
        return taggedDevice(await devices.bytes.patchDevice(input, call));
      } finally {
        // Here the ACL changes at once; other gateways receive `updated`.
        permissions.forget(params.id);
      }
    },

    async deleteDevice({ params, call }) {
      await devices.bytes.deleteDevice({ id: params.id }, call);
      return noContent;
    },

    readCredentials: async ({ params, call }) =>
      json(await devices.bytes.readCredentials({ id: params.id }, call)),

    rotateToken: async ({ params, call }) => json(await devices.bytes.rotateToken({ id: params.id }, call)),

    rotatePublicKey: async ({ params, call }) =>
      json(await devices.bytes.rotatePublicKey({ id: params.id }, call)),

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

    listKeys: async ({ within }) => wholeList(keys.bytes.listKeys, within),

    createKey: async ({ body, call }) => json(await keys.bytes.createKey(body ?? {}, call), { status: 201 }),

    async deleteKey({ params, call }) {
      await keys.bytes.deleteKey({ id: params.id }, call);
      return noContent;
    },

    listCustomers: async ({ within }) => wholeList(keys.bytes.listCustomers, within),

    async deleteCustomer({ params, call }) {
      await keys.bytes.deleteCustomer({ customer_id: params.id }, call);
      return noContent;
    },

    listDeadMail: async ({ within }) => wholeList(mailer.bytes.listDeadMail, within),

    async retryDeadMail({ params, call }) {
      await mailer.bytes.retryDeadMail({ id: params.id }, call);
      return noContent;
    },
  };
}

/** A device with the tag that a conditional write sends back. */
function taggedDevice(bytes: Uint8Array): Reply {
  const { first, rest } = openEnvelope(bytes, "etag", "device");
  return json(rest, { headers: { ETag: first } });
}

function wholeList(
  list: (page: PageRequest, call: CallContext) => Promise<Uint8Array>,
  within: Within,
): Promise<Reply> {
  return jsonArray(pagesOf((page) => within(pageMs, (call) => list(page, call)), undefined));
}

/** A page of the device list with a `Link` to the next one, which repeats the selection but never a key. */
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
