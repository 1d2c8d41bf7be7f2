import type { devices } from "@devmesh/contracts/devices";
import type { keys } from "@devmesh/contracts/keys";
import { KeyedQueue } from "@devmesh/service-kit/keyed-queue";
import type { Client, Implementation } from "@devmesh/service-kit/rpc/implementation";
import { cutPage } from "@devmesh/service-kit/rpc/page";
import { mayAccess } from "./acl/principal-rights.ts";
import { type BoardsOptions, createBoards } from "./boards/boards.ts";
import type { BrokerConnections } from "./connections/broker-connections.ts";
import type { Diagnostics } from "./diagnostics/diagnostics.ts";
import { createDeviceCreation, type DeviceCreationOptions } from "./operations/device-creation.ts";
import { createDeviceDeletion, type DeviceDeletionOptions } from "./operations/device-deletion.ts";
import { type RecoveryOptions, startRecovery } from "./operations/recovery.ts";
import { createTokenRotation, type TokenRotationOptions } from "./operations/token-rotation.ts";
import type { PresenceWatch } from "./presence/presence-watch.ts";
import { createFacetDevices, type DeviceFacetsOptions } from "./registry/device-facets.ts";
import { createListDevices, createSelectDevices } from "./registry/device-list.ts";
import { createDevicePatches, type DevicePatchOptions } from "./registry/device-patch.ts";
import { describeDeviceFor } from "./registry/device-view.ts";
import { createDeviceWalk, type DeviceWalkOptions } from "./registry/device-walk.ts";
import { createListDiagnostics, type DiagnosisListOptions } from "./registry/diagnosis-list.ts";
import { etagOf } from "./registry/etag.ts";
import { createSummarizeFleet, type FleetSummaryOptions } from "./registry/fleet-summary.ts";
import { describeDelta } from "./shadow/describe-shadow.ts";
import type { DeviceStore } from "./store/device-store.ts";
import { createSavedViews, type SavedViewsOptions } from "./views/saved-views.ts";

/** What the use cases in other files need, and those here. */
type DevicesOptions = BoardsOptions &
  DeviceCreationOptions &
  DeviceDeletionOptions &
  DeviceWalkOptions &
  Omit<DeviceFacetsOptions, "walk"> &
  Omit<DiagnosisListOptions, "walk"> &
  DevicePatchOptions &
  FleetSummaryOptions &
  SavedViewsOptions &
  TokenRotationOptions &
  Omit<RecoveryOptions, "creation" | "deletion" | "rotation"> & {
    readonly store: Pick<DeviceStore, "count" | "find" | "findAll" | "has">;
    readonly keys: Pick<Client<typeof keys>, "readCredentials" | "rotatePublicKey">;
    readonly connections: Pick<BrokerConnections, "list">;
    readonly presence: Pick<PresenceWatch, "connectedAt">;
    readonly diagnostics: Pick<Diagnostics, "ofDevice" | "ofUnknown">;
  };

/** The registry's use cases. Resumes in the background what a crash left half-done. */
export function createDevices(options: DevicesOptions): Implementation<typeof devices> {
  const { store, keys, presence, connections, diagnostics } = options;
  const creation = createDeviceCreation(options);
  const deletion = createDeviceDeletion(options);
  const tokens = new KeyedQueue();
  const rotation = createTokenRotation(options, tokens);
  const walked = { ...options, walk: createDeviceWalk(options) };
  startRecovery({ ...options, creation, deletion, rotation });

  return {
    listDevices: createListDevices(walked),
    selectDevices: createSelectDevices(walked),
    facetDevices: createFacetDevices(walked),
    countDevices: async (_input, { signal }) => ({ count: await store.count({}, signal) }),
    summarizeFleet: createSummarizeFleet(options),
    createDevice: creation.createDevice,
    ...createDevicePatches(options),

    async readDevice({ id, principal }, ctx) {
      const device = mayAccess(principal, id) ? await store.find(id, ctx.signal) : null;
      if (device === null) return ctx.fail("device_not_found");
      return { etag: etagOf(device, presence), device: describeDeviceFor(principal, device, presence) };
    },

    async readDelta({ id }, ctx) {
      const device = await store.find(id, ctx.signal);
      return device === null ? ctx.fail("device_not_found") : describeDelta(device.shadow);
    },

    async readDeltas({ ids }, { signal }) {
      const found = new Map((await store.findAll(ids, signal)).map((device) => [device.id, device]));
      const deltas = ids.map((id) => {
        const device = found.get(id);
        if (device === undefined) return null;
        return { ...describeDelta(device.shadow), has_metadata: device.delta_metadata };
      });
      return cutPage(deltas, { limit: ids.length, cursorOf: String }).items;
    },

    async deleteDevice({ id }, ctx) {
      return (await deletion.begin(id, ctx)) ? {} : ctx.fail("device_not_found");
    },

    async readCredentials({ id }, ctx) {
      if (!(await store.has(id, ctx.signal))) return ctx.fail("device_not_found");
      return await tokens.run(id, () => keys.readCredentials({ device_id: id }, ctx));
    },

    async rotateToken({ id }, ctx) {
      return (await rotation.begin(id, ctx)) ?? ctx.fail("device_not_found");
    },

    async rotatePublicKey({ id }, ctx) {
      if (!(await store.has(id, ctx.signal))) return ctx.fail("device_not_found");
      return await keys.rotatePublicKey({ device_id: id }, ctx);
    },

    async readPresence({ id }, ctx) {
      if (!(await store.has(id, ctx.signal))) return ctx.fail("device_not_found");
      const connectedAt = presence.connectedAt(id);
      const connected_at = connectedAt === null ? null : new Date(connectedAt).toISOString();
      return { online: presence.isOnline(id), connected_at };
    },

    ...createSavedViews(options),
    ...createBoards(options),

    readPresences: async ({ ids }) => ({ online: ids.filter((id) => presence.isOnline(id)) }),

    listDiagnostics: createListDiagnostics(walked),

    async readDiagnostics({ id }, ctx) {
      const device = await store.find(id, ctx.signal);
      if (device === null) return ctx.fail("device_not_found");
      return diagnostics.ofDevice(id, device.created_at);
    },

    async listUnknownDevices(_input, ctx) {
      const tried = diagnostics.ofUnknown();
      const exist = await Promise.all(tried.map(({ id }) => store.has(id, ctx.signal)));
      return tried.filter((_, at) => !exist[at]);
    },

    async readConnections({ id }, ctx) {
      const listed = await connections.list(ctx, id);
      return { client_ids: listed.connections.map(({ mqttClientId }) => mqttClientId) };
    },

    async readAccess({ id }, ctx) {
      const device = await store.find(id, ctx.signal);
      if (device === null) return ctx.fail("device_not_found");
      return { acl: device.acl, created_at: new Date(device.created_at).toISOString() };
    },

    async authorize({ id, action }, ctx) {
      const device = await store.find(id, ctx.signal);
      if (device === null) return ctx.fail("device_not_found");
      const { rpc, queries } = device.acl;
      if (action.kind === "rpc") {
        return rpc.includes(action.func) ? { query: null } : ctx.fail("rpc_not_permitted");
      }
      const query = Object.hasOwn(queries, action.name) ? queries[action.name] : undefined;
      return query === undefined ? ctx.fail("query_not_found") : { query };
    },

    async authorizeSeries({ id, name }, ctx) {
      const device = await store.find(id, ctx.signal);
      if (device === null) return ctx.fail("device_not_found");
      const { queries } = device.acl;
      const query = Object.hasOwn(queries, name) ? queries[name] : undefined;
      if (query === undefined) return ctx.fail("query_not_found");
      const { topic, since, pointers } = query;
      return pointers === undefined
        ? ctx.fail("series_not_permitted")
        : { query: { topic, ...(since !== undefined && { since }), pointers } };
    },
  };
}
