import type { devices } from "@devmesh/contracts/devices";
import type { JsonObject } from "@devmesh/contracts/model/json";
import { systemClock } from "@devmesh/service-kit/clock";
import { createLogger } from "@devmesh/service-kit/logger";
import { type Context, createCallContext } from "@devmesh/service-kit/rpc/context";
import { expect, test } from "@jest/globals";
import { createDevicePatches } from "../src/registry/device-patch.ts";
import { createSqliteDeviceStore } from "../src/store/device-store.sqlite.ts";
import type { DeviceStore } from "../src/store/device-store.ts";
import { newDevice } from "./device-store.suite.ts";

type PatchContext = Context<typeof devices, "patchDevice">;

const context = (): PatchContext => ({
  ...createCallContext({ timeoutMs: 5_000 }),
  log: createLogger({ service: "test", level: "silent" }),
  fail: (...[reason]: unknown[]) => {
    throw new Error(String(reason));
  },
});

/** Two replicas of the service over one store. */
function replicas(store: DeviceStore) {
  const published: number[] = [];
  const events = {
    created: async () => undefined,
    deleted: async () => undefined,
    throttled: async () => undefined,
    diagnosed: async () => undefined,
    updated: async (device: { shadow: { version: number } }) => void published.push(device.shadow.version),
  };
  const presence = { isOnline: () => false, lastSeen: () => null };
  const replica = () => createDevicePatches({ store, presence, events, clock: systemClock }).patchDevice;
  return { published, one: replica(), other: replica() };
}

const write = (
  patch: ReturnType<typeof createDevicePatches>["patchDevice"],
  member: string,
  version?: number,
) =>
  patch(
    {
      id: "a",
      principal: { kind: "master" },
      patch: {
        shadow: { state: { desired: { [member]: 1 } }, ...(version === undefined ? {} : { version }) },
      },
    },
    context(),
  );

test("two replicas that write one device at once lose nothing of each other", async () => {
  const store = createSqliteDeviceStore(":memory:");
  await store.insert(newDevice("a"), null, context().signal);
  const { one, other, published } = replicas(store);
  const members = Array.from({ length: 50 }, (_, at) => at);
  await Promise.all(members.flatMap((at) => [write(one, `one${at}`), write(other, `other${at}`)]));
  const { shadow } = (await store.find("a", context().signal)) ?? {};
  expect([shadow?.version, Object.keys(shadow?.desired ?? {}).length]).toEqual([100, 100]);
  expect(published.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, at) => at + 1));
  await store.close();
});

test("of two replicas' writes with the same version one is accepted", async () => {
  const store = createSqliteDeviceStore(":memory:");
  await store.insert(newDevice("a"), null, context().signal);
  const { one, other } = replicas(store);
  const outcomes = await Promise.allSettled([write(one, "x", 0), write(other, "y", 0)]);
  expect(outcomes.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  expect((await store.find("a", context().signal))?.shadow.version).toBe(1);
  await store.close();
});

test("what an earlier device of the same id said is not written; what this one says is, by a broker whose clock lags", async () => {
  const store = createSqliteDeviceStore(":memory:");
  const device = newDevice("a");
  await store.insert(device, null, context().signal);
  const { one } = replicas(store);
  const say = (takenAt: number) =>
    one(
      {
        id: "a",
        principal: { kind: "device", device_id: "a" },
        patch: { shadow: { state: { reported: { takenAt } } } },
        taken_at: new Date(takenAt).toISOString(),
      },
      context(),
    );
  await expect(say(device.created_at - 6_000)).rejects.toThrow("device_not_found");
  await say(device.created_at - 1_000);
  await say(device.created_at + 60_000);
  expect((await store.find("a", context().signal))?.shadow.version).toBe(2);
  await store.close();
});

test("a device that is deleted between the check and the write is not written", async () => {
  const store = createSqliteDeviceStore(":memory:");
  await store.insert(newDevice("a"), null, context().signal);
  const replace: DeviceStore["replace"] = async (device, revision, signal) => {
    const lease = { token: "t", claimed_until: 0 };
    const operation = { kind: "deleting", ...lease, step: "revoke", event_id: "e", client_ids: [] } as const;
    await store.beginOperation("a", [null], operation, signal);
    return await store.replace(device, revision, signal);
  };
  const { one, published } = replicas({ ...store, replace });
  await expect(write(one, "x")).rejects.toThrow("device_not_found");
  expect(published).toEqual([]);
  await store.close();
});

test("labels are added and removed beside those of others, also by two replicas at once", async () => {
  const store = createSqliteDeviceStore(":memory:");
  await store.insert(newDevice("a"), null, context().signal);
  const { one, other, published } = replicas(store);
  const labels = async () => (await store.find("a", context().signal))?.shadow.tags.labels;
  const change = (patch: ReturnType<typeof createDevicePatches>["patchDevice"], body: JsonObject) =>
    patch({ id: "a", principal: { kind: "master" }, patch: body }, context());
  const members = Array.from({ length: 10 }, (_, at) => at);
  await change(one, { shadow: { tags: { labels: ["old", "kept"], site: 1 } } });
  await Promise.all(
    members.flatMap((at) => [
      change(one, { labels: { add: [`one${at}`], remove: ["old"] } }),
      change(other, { labels: { add: [`other${at}`] } }),
    ]),
  );
  const expected = ["kept", ...members.flatMap((at) => [`one${at}`, `other${at}`])];
  expect((await labels())?.toString().split(",").toSorted()).toEqual(expected.toSorted());
  const writes = published.length;
  await change(one, { labels: { add: ["kept"], remove: ["never"] } });
  expect(published).toHaveLength(writes);
  await change(one, { shadow: { tags: null }, labels: { add: ["new"] } });
  expect((await store.find("a", context().signal))?.shadow.tags).toEqual({ labels: ["new"] });
  await expect(change(one, { labels: {} })).rejects.toThrow("invalid_device");
  await expect(change(one, { labels: { add: ["x"], remove: ["x"] } })).rejects.toThrow("invalid_device");
  await store.close();
});
