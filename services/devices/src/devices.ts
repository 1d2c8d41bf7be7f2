import type { devices } from "@devmesh/contracts/devices";
import type { mesh } from "@devmesh/contracts/mesh";
import type { Clock } from "@devmesh/service-kit/clock";
import type { Clients, Implementation } from "@devmesh/service-kit/implementation";
import { concerns } from "./acl/principal-rights.ts";
import type { Background } from "./background.ts";
import { createDeviceDeletion } from "./deletion/device-deletion.ts";
import { takeUpLeftovers } from "./deletion/recovery.ts";
import type { DeviceConnections } from "./presence/device-connections.ts";
import { createDeviceCreation } from "./registry/device-creation.ts";
import type { DeviceNotices } from "./registry/device-events.ts";
import { createListDevices } from "./registry/device-list.ts";
import { createPatchDevice } from "./registry/device-patch.ts";
import { describeDeviceFor, type Presence } from "./registry/device-view.ts";
import { etagOf } from "./registry/etag.ts";
import { createTokenRotation } from "./registry/token-rotation.ts";
import { describeDelta } from "./shadow/describe-shadow.ts";
import type { DeviceStore } from "./store/device-store.ts";

type Others = Clients<(typeof mesh)["devices"]["calls"]>;

/** What the use cases need; none of it is owned by them. */
export interface DevicesDeps {
  readonly store: DeviceStore;
  readonly keys: Others["keys"];
  readonly data: Others["data"];
  readonly rpcBridge: Others["rpc-bridge"];
  readonly connections: DeviceConnections;
  readonly presence: Presence;
  readonly notices: DeviceNotices;
  readonly background: Background;
  readonly clock: Clock;
}

/** The registry's use cases. Takes up at once, in the background, what a crash left half-done. */
export function createDevices(deps: DevicesDeps): Implementation<typeof devices> {
  const { store, keys, presence, connections } = deps;
  const creation = createDeviceCreation(deps);
  const deletion = createDeviceDeletion(deps);
  const rotation = createTokenRotation(deps);
  takeUpLeftovers({ ...deps, creation, deletion, rotation });

  return {
    listDevices: createListDevices(deps),
    createDevice: creation.createDevice,
    patchDevice: createPatchDevice(deps),

    async readDevice({ id, principal }, ctx) {
      const device = concerns(principal, id) ? await store.find(id, ctx.signal) : null;
      if (device === null) return ctx.fail("device_not_found");
      return { etag: etagOf(device), device: describeDeviceFor(principal, device, presence) };
    },

    async readDelta({ id }, ctx) {
      const device = await store.find(id, ctx.signal);
      return device === null ? ctx.fail("device_not_found") : describeDelta(device.shadow);
    },

    async deleteDevice({ id }, ctx) {
      return (await deletion.begin(id, ctx)) ? {} : ctx.fail("device_not_found");
    },

    async readCredentials({ id }, ctx) {
      if (!(await store.has(id, ctx.signal))) return ctx.fail("device_not_found");
      return await keys.readCredentials({ device_id: id }, ctx);
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
      return { online: presence.isOnline(id) };
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
  };
}
