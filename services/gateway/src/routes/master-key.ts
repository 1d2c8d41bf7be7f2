import { jobs as jobsContract } from "@devmesh/contracts/jobs";
import { hasPointers } from "@devmesh/contracts/model/acl";
import { maxConditionLength, printConditionText } from "@devmesh/contracts/model/condition-text";
import { DeviceCondition, withOlderParameters } from "@devmesh/contracts/model/device-condition";
import { startOf } from "@devmesh/contracts/model/duration";
import { checkNewJob } from "@devmesh/contracts/model/job";
import { isJsonObject, type JsonObject } from "@devmesh/contracts/model/json";
import { ViolationList } from "@devmesh/contracts/model/violation";
import { masterKey } from "@devmesh/contracts/rest/master-key";
import type { Clock } from "@devmesh/service-kit/clock";
import { ServiceError } from "@devmesh/service-kit/errors";
import { Semaphore } from "@devmesh/service-kit/semaphore";
import type { PermissionCache } from "../auth/permission-cache.ts";
import { json, noContent, type Reply } from "../http/exchange.ts";
import { invalidRequest, RequestRefused } from "../http/gateway-errors.ts";
import { leadingString, openEnvelope } from "../http/json-bytes.ts";
import { answerList } from "../http/paged-list.ts";
import { condition } from "./device.ts";
import type { GatewayClients, Handlers } from "./handlers.ts";
import type { MeshOperation } from "./mesh.ts";
import { mqttAddressOf } from "./mqtt-address.ts";
import type { RpcOperation } from "./rpc.ts";

/**
 * Pages of devices that are read at one time: reads of single devices go between them. What asks for one page, or
 * searches, which may take seconds, is no whole list and waits for none.
 */
const maxPages = { ofWholeLists: 1, ofOthers: 2 };

/** Entries of diagnostics in an answer without `limit`. */
const defaultDiagnostics = 1_000;

/** Timeout of a dry run, in milliseconds: it looks over all devices. */
const trialMs = 30_000;

/** The master key API (api.md), except the state of the mesh and calls of devices. */
export function masterKeyHandlers(
  { devices, jobs, keys, mailer }: GatewayClients,
  permissions: PermissionCache,
  mqttPublicUrl: string | undefined,
  clock: Clock,
): Handlers<Exclude<keyof typeof masterKey, MeshOperation | RpcOperation>> {
  const wholeListTurns = new Semaphore({ permits: maxPages.ofWholeLists });
  const otherTurns = new Semaphore({ permits: maxPages.ofOthers });
  const mqttAddress = JSON.stringify(mqttAddressOf(mqttPublicUrl));
  return {
    readMqttAddress: async () => json(mqttAddress),

    async listDevices({ query, call, within }) {
      const { order, online, filter, where } = query;
      const selection = {
        ...(online !== undefined && { online }),
        ...(filter !== undefined && { filter }),
        ...(where !== undefined && { where }),
      };
      const ordered = { ...selection, ...(order !== undefined && { order }) };
      const asked = withOlderParameters(where ?? {}, { online, filter });
      if (asked !== null && !DeviceCondition.safeParse(asked).success)
        throw invalidRequest([{ pointer: "/query/filter", detail: "is one word too many beside `where`" }]);
      const isSearch = Object.keys(selection).length > 0;
      const turns = isSearch || query.limit !== undefined ? otherTurns : wholeListTurns;
      const count = async () => {
        if (!isSearch) return (await devices.countDevices({}, call)).count;
        return asked === null ? 0 : (await devices.facetDevices({ where: asked, facets: [] }, call)).total;
      };
      return answerList(
        (page, call) => devices.bytes.listDevices({ ...ordered, ...page }, call),
        masterKey.listDevices.path,
        { query: linked(query), within, turns },
        count,
      );
    },

    async facetDevices({ query: { where = {}, facets = [] }, call }) {
      return json(await devices.bytes.facetDevices({ where, facets }, call));
    },

    summarizeDevices: async ({ call }) => json(await devices.bytes.summarizeFleet({}, call)),

    async createDevice({ body, call }) {
      const bytes = await devices.bytes.createDevice(body ?? {}, call);
      const id = leadingString(bytes, "id");
      const headers = { Location: masterKey.readDevice.path.replace(":id", id) };
      const acl = body?.acl;
      // The answer of `devices` leaves out pointers.
      const device =
        acl !== undefined && hasPointers(acl)
          ? JSON.stringify({ ...(JSON.parse(Buffer.from(bytes).toString()) as object), acl })
          : bytes;
      return { ...json(device, { status: 201, headers }), created: id };
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

    readDiagnostics: async ({ params, call }) =>
      json(await devices.bytes.readDiagnostics({ id: params.id }, call)),

    listDiagnostics({ query, within }) {
      const { name, where, since } = query;
      const selection = {
        ...(name !== undefined && { name }),
        ...(where !== undefined && { where }),
        ...(since !== undefined && { since: startOf(since, clock.now()) }),
      };
      return answerList(
        (page, call) => devices.bytes.listDiagnostics({ ...selection, ...page }, call),
        masterKey.listDiagnostics.path,
        { query: { ...linked(query), limit: query.limit ?? defaultDiagnostics }, within },
        null,
      );
    },

    listUnknownDevices: async ({ call }) => json(await devices.bytes.listUnknownDevices({}, call)),

    listViews: async ({ call }) => json(await devices.bytes.listViews({}, call)),

    async createView({ body, call }) {
      const bytes = await devices.bytes.createView(body, call);
      return { ...json(bytes, { status: 201 }), created: leadingString(bytes, "id") };
    },

    patchView: async ({ params, body, call }) =>
      json(await devices.bytes.patchView({ ...body, id: params.id }, call)),

    async deleteView({ params, call }) {
      await devices.bytes.deleteView({ id: params.id }, call);
      return noContent;
    },

    listBoards: async ({ call }) => json(await devices.bytes.listBoards({}, call)),

    async createBoard({ body, call }) {
      const bytes = await devices.bytes.createBoard(body, call);
      const id = leadingString(bytes, "id");
      const headers = { Location: masterKey.readBoard.path.replace(":id", id) };
      return { ...json(bytes, { status: 201, headers }), created: id };
    },

    readBoard: async ({ params, call }) => json(await devices.bytes.readBoard({ id: params.id }, call)),

    patchBoard: async ({ params, body, call }) =>
      json(await devices.bytes.patchBoard({ ...body, id: params.id }, call)),

    async deleteBoard({ params, call }) {
      await devices.bytes.deleteBoard({ id: params.id }, call);
      return noContent;
    },

    readCredentials: async ({ params, call }) =>
      json(await devices.bytes.readCredentials({ id: params.id }, call)),

    rotateToken: async ({ params, call }) => json(await devices.bytes.rotateToken({ id: params.id }, call)),

    rotatePublicKey: async ({ params, call }) =>
      json(await devices.bytes.rotatePublicKey({ id: params.id }, call)),

    listExecutions: (request) =>
      answerList(
        async (page, call) => {
          const { state } = request.query;
          const input = { device_id: request.params.id, ...(state && { state }), ...page };
          return await jobs.bytes.listExecutions(input, call);
        },
        masterKey.listExecutions.path.replace(":id", request.params.id),
        request,
        null,
      ),

    readExecution: async ({ params, principal, call }) =>
      json(await jobs.bytes.readExecution({ id: params.id, principal }, call)),

    cancelExecution: async ({ params, body, call }) =>
      json(await jobs.bytes.cancelExecution({ id: params.id, force: body.force ?? false }, call)),

    async createJob({ body, query, keyId = "", call, within }) {
      if (query.dry_run) {
        const { target, action } = body;
        // The service is asked for the target alone.
        const violations = new ViolationList();
        checkNewJob({ action } as JsonObject, violations);
        if (violations.any) throw invalidJob(violations);
        const asked = action.kind === "firmware" ? { target, firmware_id: action.firmware_id } : { target };
        return within(trialMs, async (call) => json(await jobs.bytes.tryTarget(asked, call)));
      }
      const created_by = { kind: "master", key_id: keyId } as const;
      const bytes = await jobs.bytes.createJob({ job: body, created_by }, call);
      const headers = { Location: masterKey.readJob.path.replace(":id", leadingString(bytes, "id")) };
      return json(bytes, { status: 201, headers });
    },

    listJobs: (request) =>
      answerList(
        async (page, call) => {
          const { state } = request.query;
          return await jobs.bytes.listJobs({ ...(state && { state }), ...page }, call);
        },
        masterKey.listJobs.path,
        request,
        null,
      ),

    readJob: async ({ params, call }) => json(await jobs.bytes.readJob({ id: params.id }, call)),

    async changeJob({ params, body, keyId = "", call }) {
      const by = { kind: "master", key_id: keyId } as const;
      return json(await jobs.bytes.changeJob({ id: params.id, patch: body, by }, call));
    },

    listJobExecutions: (request) =>
      answerList(
        async (page, call) => {
          const { state } = request.query;
          const input = { id: request.params.id, ...(state && { state }), ...page };
          return await jobs.bytes.listJobExecutions(input, call);
        },
        masterKey.listJobExecutions.path.replace(":id", request.params.id),
        request,
        null,
      ),

    listKeys: (request) =>
      answerList(
        request.keyKind === "master" ? keys.bytes.listKeys : keys.bytes.listKeysWithoutSecrets,
        masterKey.listKeys.path,
        request,
        async () => (await keys.countKeys({}, request.call)).count,
      ),

    async createKey({ body, call }) {
      const bytes = await keys.bytes.createKey(body ?? {}, call);
      return { ...json(bytes, { status: 201 }), created: leadingString(bytes, "id") };
    },

    async deleteKey({ params, call }) {
      await keys.bytes.deleteKey({ id: params.id }, call);
      return noContent;
    },

    listSessions: async ({ call }) => json(await keys.bytes.listSessions({}, call)),

    // A route that takes a key has its id.
    createSession: async ({ body, keyId = "", call }) =>
      json(await keys.bytes.createSession({ ...body, master_key_id: keyId }, call), { status: 201 }),

    async endSession({ params, call }) {
      await keys.bytes.endSession({ id: params.id }, call);
      return noContent;
    },

    listCustomers: (request) =>
      answerList(
        keys.bytes.listCustomers,
        masterKey.listCustomers.path,
        request,
        async () => (await keys.countCustomers({}, request.call)).count,
      ),

    async deleteCustomer({ params, call }) {
      await keys.bytes.deleteCustomer({ customer_id: params.id }, call);
      return noContent;
    },

    listDeadMail: (request) =>
      answerList(
        mailer.bytes.listDeadMail,
        masterKey.listDeadMail.path,
        request,
        async () => (await mailer.readQueue({}, request.call)).dead,
      ),

    async retryDeadMail({ params, call }) {
      await mailer.bytes.retryDeadMail({ id: params.id }, call);
      return noContent;
    },
  };
}

/** A query as a `Link` repeats it. */
function linked<Q extends { readonly where?: DeviceCondition | undefined }>({ where, ...query }: Q) {
  if (where === undefined) return query;
  const text = printConditionText(where);
  // It can be longer than the JSON that it was read from, and then be refused.
  return { ...query, where: text.length > maxConditionLength ? JSON.stringify(where) : text };
}

/** A device with the tag that a conditional write sends back. */
function taggedDevice(bytes: Uint8Array): Reply {
  const { first, rest } = openEnvelope(bytes, "etag", "device");
  return json(rest, { headers: { ETag: first } });
}

/** The refusal of a job, as by its service. */
function invalidJob({ list: details }: ViolationList): ServiceError {
  const { code, when } = jobsContract.methods.createJob.errors.job_invalid;
  return new ServiceError({ code, reason: "job_invalid", message: when, details });
}
