import { deviceEvents, devices } from "@devmesh/contracts/devices";
import type { Device } from "@devmesh/contracts/model/device";
import { isJsonObject, type Json, type JsonObject } from "@devmesh/contracts/model/json";
import { listDeviceConnections } from "@devmesh/device-broker/connections";
import { type Bus, connectBus } from "@devmesh/service-kit/bus";
import { describeError, ServiceError } from "@devmesh/service-kit/errors";
import { createPublisher, type Publisher } from "@devmesh/service-kit/events/publisher";
import type { Context } from "@devmesh/service-kit/rpc/context";
import { type Served, serve } from "@devmesh/service-kit/rpc/serve";
import { fakeContract, fakeDevice } from "@devmesh/testkit/fakes";
import type { z } from "zod";

/** One device of the fake. */
interface KnownDevice {
  online: boolean;
  desired: JsonObject;
  reported: JsonObject;
  tags: JsonObject;
  version: number;
  timestamp: number;
  /** Whether its delta has the metadata. */
  deltaMetadata: boolean;
}

/** The part of the registry's contract that the bridge calls, over a map in memory. */
export interface FakeRegistry extends AsyncDisposable {
  readonly known: Map<string, KnownDevice>;
  /** Patches in the order in which they were applied. */
  readonly patches: JsonObject[];
  /** With each patch: when the broker took the message that asks for it. */
  readonly takenAt: (string | undefined)[];
  readonly events: Publisher<typeof deviceEvents>;
  /** A device with an empty shadow; without an event. */
  add(id: string, device?: Partial<KnownDevice>): KnownDevice;
  /** Publishes that the shadow changed, as `devices` does after a write. */
  publishUpdated(id: string): Promise<void>;
  /** Runs before each patch is applied and may throw or wait. */
  beforePatch: (id: string) => void | Promise<void>;
  /** Runs when a patch is applied, before that is answered, and may throw or wait. */
  afterPatch: (id: string) => void | Promise<void>;
  /** Runs before presence is answered. */
  beforePresence: (id: string) => void | Promise<void>;
  /** The broker's answer. */
  connectedClientIds: (id: string) => Promise<readonly string[]>;
  /** Answers nothing until `serveAgain`. */
  stopServing(): Promise<void>;
  serveAgain(): void;
}

/** Serves the contract of `devices` from memory. */
export async function startFakeRegistry(connection: Parameters<typeof connectBus>[0]): Promise<FakeRegistry> {
  const bus: Bus = await connectBus(connection);
  const events = await createPublisher(bus, deviceEvents);
  const known = new Map<string, KnownDevice>();
  const patches: JsonObject[] = [];
  const takenAt: (string | undefined)[] = [];

  const find = (id: string): KnownDevice => {
    const device = known.get(id);
    if (device === undefined) throw new ServiceError({ code: "not_found", reason: "device_not_found" });
    return device;
  };

  const describe = (id: string): Device => {
    const { desired, reported, tags, version, timestamp, online } = find(id);
    const metadata = { desired: {}, reported: {} };
    const shadow = { state: { desired, reported }, metadata, tags, version, timestamp };
    return fakeDevice(id, { online, shadow });
  };

  const view = (id: string): JsonObject => {
    const { desired, reported, version, timestamp } = find(id);
    return {
      id,
      shadow: { state: { desired, reported, ...deltaMember(desired, reported) }, version, timestamp },
    };
  };

  const apply = async (
    { id, patch: shadow, taken_at }: z.output<typeof devices.methods.updateShadows.in>["updates"][number],
    context: Context<typeof devices, "updateShadows">,
  ) => {
    await registry.beforePatch(id);
    const device = find(id);
    if (shadow.tags !== undefined) return context.fail("not_writable", { pointers: ["/shadow/tags"] });
    const state = isJsonObject(shadow.state) ? shadow.state : {};
    const unknown = Object.keys(state).find((section) => section !== "desired" && section !== "reported");
    if (unknown !== undefined)
      return context.fail("invalid_device", [
        { pointer: `/shadow/state/${unknown}`, detail: "is not known here" },
      ]);
    if (JSON.stringify(state).length > 32_768)
      return context.fail("shadow_too_large", [{ pointer: "/shadow/state", detail: "is too large" }]);
    if (shadow.version !== undefined && shadow.version !== device.version) {
      return context.fail("version_conflict", { version: device.version });
    }
    device.desired = merged(device.desired, state.desired);
    device.reported = merged(device.reported, state.reported);
    device.version++;
    device.timestamp = Date.now();
    patches.push({ shadow });
    takenAt.push(taken_at);
    await registry.publishUpdated(id);
    await registry.afterPatch(id);
    const { version, timestamp } = device;
    return { version, timestamp };
  };

  const implementation = fakeContract(devices, {
    async selectDevices({ where: { online } }) {
      const listed = [...known].filter(([, device]) => online === undefined || device.online === online);
      return { next: null, items: listed.map(([id]) => id) };
    },
    async readPresence({ id }) {
      await registry.beforePresence(id);
      return { online: find(id).online };
    },
    async readConnections({ id }) {
      return { client_ids: [...(await registry.connectedClientIds(id))] };
    },
    async readDevice({ id }) {
      return { etag: '"1"', device: view(id) };
    },
    async readDeltas({ ids }) {
      return ids.map((id) => {
        const device = known.get(id);
        if (device === undefined) return null;
        const { desired, reported, version, timestamp, deltaMetadata: has_metadata } = device;
        const { delta: state = {} } = deltaMember(desired, reported);
        return { state, metadata: {}, version, timestamp, has_metadata };
      });
    },
    updateShadows: ({ updates }, context) =>
      Promise.all(
        updates.map((update) =>
          apply(update, context).catch((error: unknown) => ({
            error: describeError(ServiceError.from(error)),
          })),
        ),
      ),
  });

  let served: Served | null = serve(bus, devices, implementation);
  await bus.flush();

  const registry: FakeRegistry = {
    known,
    patches,
    takenAt,
    events,
    beforePatch: () => undefined,
    afterPatch: () => undefined,
    beforePresence: () => undefined,
    async connectedClientIds(id) {
      const { connections } = await listDeviceConnections(bus, { deviceId: id });
      return connections.map(({ mqttClientId }) => mqttClientId);
    },
    add(id, given = {}) {
      const device = {
        online: true,
        desired: {},
        reported: {},
        tags: {},
        version: 1,
        timestamp: Date.now(),
        deltaMetadata: true,
        ...given,
      };
      known.set(id, device);
      return device;
    },
    async publishUpdated(id) {
      const timestamp = new Date().toISOString();
      await events.updated({ id, timestamp, device: describe(id) });
    },
    async stopServing() {
      await served?.drain(0);
      served = null;
    },
    serveAgain() {
      served = serve(bus, devices, implementation);
    },
    async [Symbol.asyncDispose]() {
      await served?.drain(0);
      await bus.close();
    },
  };
  return registry;
}

function merged(section: JsonObject, patch: Json | undefined): JsonObject {
  if (patch === undefined || !isJsonObject(patch)) return patch === null ? {} : section;
  const entries = Object.entries({ ...section, ...patch }).filter(([, value]) => value !== null);
  return Object.fromEntries(entries);
}

/** Of scalars and one level only: the arithmetic of shadows is the registry's and tested there. */
function deltaMember(desired: JsonObject, reported: JsonObject): { delta?: JsonObject } {
  const differing = Object.entries(desired).filter(([name, value]) => reported[name] !== value);
  return differing.length === 0 ? {} : { delta: Object.fromEntries(differing) };
}
