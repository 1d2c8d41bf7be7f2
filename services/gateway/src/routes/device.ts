import { defaultLatestLimit } from "@devmesh/contracts/model/data-record";
import type { JsonObject } from "@devmesh/contracts/model/json";
import type { Principal } from "@devmesh/contracts/principal";
import { deviceAccess } from "@devmesh/contracts/rest/device-access";
import type { deviceKey } from "@devmesh/contracts/rest/device-key";
import { storedData } from "@devmesh/contracts/rest/stored-data";
import type { Clock } from "@devmesh/service-kit/clock";
import { ServiceError } from "@devmesh/service-kit/errors";
import type { CallContext } from "@devmesh/service-kit/rpc/context";
import type { PermissionCache } from "../auth/permission-cache.ts";
import { json } from "../http/exchange.ts";
import { openEnvelope } from "../http/json-bytes.ts";
import { linkHeader } from "../http/paged-list.ts";
import { splitPage } from "../http/split-page.ts";
import type { GatewayClients, Handlers } from "./handlers.ts";
import { narrowQuery } from "./narrow-query.ts";
import { answerRecords, assertRecordLimit } from "./record-pages.ts";
import type { RpcOperation } from "./rpc.ts";
import { seriesAnswers } from "./series.ts";

interface OwnDevice {
  readonly principal: Extract<Principal, { readonly kind: "device_key" | "public_key" }>;
  readonly call: CallContext;
}

/**
 * The device of a device key or a public key (api.md). `devices` decides what the key may see, change and query;
 * its answers about queries are cached in `permissions`.
 */
export function deviceHandlers(
  { devices, data, jobs }: GatewayClients,
  permissions: PermissionCache,
  clock: Clock,
): Handlers<Exclude<keyof typeof deviceAccess, RpcOperation> | keyof typeof deviceKey> {
  const series = seriesAnswers({ data, devices }, clock);

  const readOwn = async ({ principal, call }: OwnDevice) =>
    bareDevice(await devices.bytes.readDevice({ id: principal.device_id, principal }, call));

  const patchOwn = async ({
    principal,
    body,
    header,
    call,
  }: OwnDevice & { readonly body: JsonObject; readonly header: (name: string) => string | undefined }) =>
    bareDevice(
      await devices.bytes.patchDevice(
        { id: principal.device_id, principal, patch: body, ...condition(header("if-match")) },
        call,
      ),
    );

  return {
    async readAppDevice({ principal, query, keyId: caller, call }) {
      if (query.latest !== true) return readOwn({ principal, call });
      const device_id = principal.device_id;
      const limit = defaultLatestLimit;
      const [device, page] = await Promise.all([
        devices.bytes.readDevice({ id: device_id, principal }, call),
        data.bytes.readLatest({ principal, caller, device_id, limit }, call),
      ]);
      const { items, next } = splitPage(page);
      const asked = { path: storedData.readOwnLatest.path, query: { limit } };
      return json(withArray(openEnvelope(device, "etag", "device").rest, "latest", items), {
        headers: linkHeader(asked, next),
      });
    },
    patchAppDevice: patchOwn,
    readOwnDevice: readOwn,
    patchOwnDevice: patchOwn,

    readOwnExecution: async ({ params, principal, call }) =>
      json(await jobs.bytes.readExecution({ id: params.id, principal }, call)),

    async runNamedSeries({
      params: { name },
      query: asked,
      principal,
      keyId: caller,
      preferred,
      call,
      within,
    }) {
      const id = principal.device_id;
      const query = await permissions.get(id, `series ${name}`, () =>
        devices.authorizeSeries({ id, name }, call),
      );
      const { topic = "", pointers = [], since } = query ?? {};
      const narrowed = { ...asked, topic, pointer: pointers };
      return series.answer(narrowed, { principal, caller, since }, { preferred, call, within });
    },

    async runNamedQuery({ params: { name }, query: narrowing, principal, keyId: caller, call, within }) {
      const id = principal.device_id;
      const query = await permissions.get(id, `query ${name}`, () =>
        devices.authorize({ id, action: { kind: "query", name } }, call),
      );
      if (query === null)
        throw ServiceError.of("internal", { cause: new Error("`authorize` returned no query") });
      if (query.limit === undefined) assertRecordLimit(narrowing.limit);
      const { skip, until, after } = narrowing;
      const narrowed = narrowQuery(query, narrowing, clock.now());
      const asked = { path: deviceAccess.runNamedQuery.path.replace(":name", name), query: narrowing };
      return answerRecords(data, { principal, caller, ...narrowed, skip, until, after }, within, asked);
    },
  };
}

/** A device as a restricted key sees it, without its tag. */
function bareDevice(bytes: Uint8Array) {
  return json(openEnvelope(bytes, "etag", "device").rest);
}

/** An object in JSON, not empty, with one more member: an array of `items`. */
function withArray(object: Uint8Array, name: string, items: Uint8Array): Uint8Array {
  const opening = Buffer.from(`,${JSON.stringify(name)}:[`);
  return Buffer.concat([object.subarray(0, -1), opening, items, Buffer.from("]}")]);
}

/** The condition of a write, as `devices.patchDevice` takes it. */
export function condition(ifMatch: string | undefined): { readonly if_match?: string } {
  return ifMatch === undefined ? {} : { if_match: ifMatch };
}
