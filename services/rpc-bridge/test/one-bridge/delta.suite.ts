import { eventually } from "@devmesh/testkit/eventually";
import { fakeDevice } from "@devmesh/testkit/fakes";
import type { MqttDevice } from "@devmesh/testkit/mqtt-device";
import { afterEach, describe, expect, test } from "@jest/globals";
import { type SharedBridge, startBridge } from "../bridge-fixture.ts";

/** Suite over a bridge with its default settings: the publication of deltas. */
export function deltas(shared: SharedBridge): void {
  describe("the publication of deltas", () => {
    const connected: MqttDevice[] = [];

    afterEach(async () => {
      await Promise.all(connected.splice(0).map((device) => device.leave()));
      shared.mesh.registry.known.clear();
    });

    async function connect(id: string): Promise<MqttDevice> {
      const device = await shared.mesh.connect(id);
      connected.push(device);
      return device;
    }

    const now = () => new Date().toISOString();
    const bodies = (device: MqttDevice) =>
      device.messages.map(({ payload }) => JSON.parse(payload) as { version: number });

    describe("the delta of a shadow", () => {
      test("is published on a change and holds state, metadata, version and timestamp", async () => {
        shared.mesh.registry.add("pump", { desired: { speed: 3 }, version: 4, timestamp: 1_700_000_000_000 });
        const device = await connect("pump");
        await device.subscribe("pump/shadow/delta", 1);
        await shared.mesh.registry.publishUpdated("pump");
        const { payload, qos } = await device.awaitMessage("pump/shadow/delta");
        expect(JSON.parse(payload)).toEqual({
          state: { speed: 3 },
          metadata: {},
          version: 4,
          timestamp: 1_700_000_000_000,
        });
        expect(qos).toBe(1);
      });

      test("has no metadata where its device wants none, from the moment when that is set", async () => {
        const shadow = shared.mesh.registry.add("clock", { desired: { on: true }, version: 4, timestamp: 1 });
        const device = await connect("clock");
        await device.subscribe("clock/shadow/delta", 1);
        await shared.mesh.registry.publishUpdated("clock");
        await eventually(() => bodies(device).length > 0);
        device.forget();
        shadow.deltaMetadata = false;
        await shared.mesh.registry.publishUpdated("clock");
        const { payload } = await device.awaitMessage("clock/shadow/delta");
        expect(JSON.parse(payload)).toEqual({ state: { on: true }, version: 4, timestamp: 1 });
        device.forget();
        shadow.deltaMetadata = true;
        await shared.mesh.registry.publishUpdated("clock");
        const again = await device.awaitMessage("clock/shadow/delta");
        expect(JSON.parse(again.payload)).toMatchObject({ metadata: {}, version: 4 });
      });

      test("is retained: a device that subscribes later gets it", async () => {
        shared.mesh.registry.add("lamp", { desired: { on: true } });
        const device = await connect("lamp");
        await shared.mesh.registry.publishUpdated("lamp");
        const retained = await eventually(async () => {
          await device.subscribe("lamp/shadow/delta");
          return await device.awaitMessage(({ retained }) => retained, 1_000);
        });
        await device.leave();
        const again = await connect("lamp");
        await again.subscribe("lamp/shadow/delta");
        expect(await again.awaitMessage("lamp/shadow/delta")).toMatchObject({
          retained: true,
          payload: retained.payload,
        });
      });

      test("has an empty state, not an empty payload, when nothing differs", async () => {
        const device = await connect("fan");
        await device.subscribe("fan/shadow/delta");
        await shared.mesh.registry.publishUpdated("fan");
        expect(JSON.parse((await device.awaitMessage("fan/shadow/delta")).payload)).toMatchObject({
          state: {},
        });
      });

      test("of a created device is published when it connects first", async () => {
        shared.mesh.registry.add("crane", { desired: { up: true }, version: 1, timestamp: 1 });
        await shared.mesh.registry.events.created({
          id: "crane",
          timestamp: now(),
          device: fakeDevice("crane"),
        });
        const device = await connect("crane");
        await device.subscribe("crane/shadow/delta");
        await shared.mesh.registry.events.online({ id: "crane", timestamp: now() });
        await eventually(() => bodies(device).length > 0);
        expect(bodies(device)[0]).toMatchObject({ state: { up: true }, version: 1 });
      });

      test("is published again when the device connects and the broker's may be out of date", async () => {
        const shadow = shared.mesh.registry.add("heater", { version: 1, timestamp: 1 });
        const device = await connect("heater");
        await device.subscribe("heater/shadow/delta");
        await shared.mesh.registry.events.online({ id: "heater", timestamp: now() });
        await eventually(() => bodies(device).at(-1)?.version === 1);
        // A change whose event was lost.
        shadow.version = 2;
        shadow.desired = { on: true };
        await shared.mesh.registry.events.online({ id: "heater", timestamp: now() });
        await eventually(() => bodies(device).at(-1)?.version === 2);
        // Nothing new: the next change is the next message.
        await shared.mesh.registry.events.online({ id: "heater", timestamp: now() });
        shadow.version = 3;
        await shared.mesh.registry.publishUpdated("heater");
        await eventually(() => bodies(device).at(-1)?.version === 3);
        // Each may have been published once more since.
        expect([...new Set(bodies(device).map(({ version }) => version))]).toEqual([1, 2, 3]);
      });

      test("that the broker did not have yet when the device connected is published once more, too, however old it is", async () => {
        shared.mesh.registry.add("gate", { desired: { open: false }, version: 1, timestamp: 1 });
        const device = await connect("gate");
        await device.subscribe("gate/shadow/delta");
        await shared.mesh.registry.events.online({ id: "gate", timestamp: now() });
        await eventually(() => bodies(device).length === 2);
        expect(bodies(device).map(({ version }) => version)).toEqual([1, 1]);
      });

      test("that changed while the device connected is published once more when it has had the time to subscribe", async () => {
        shared.mesh.registry.add("valve", { desired: { open: true }, version: 2, timestamp: Date.now() });
        const device = await connect("valve");
        await device.subscribe("valve/shadow/delta");
        await shared.mesh.registry.publishUpdated("valve");
        await eventually(() => bodies(device).at(-1)?.version === 2);
        device.forget();
        await shared.mesh.registry.events.online({ id: "valve", timestamp: now() });
        const { payload } = await device.awaitMessage("valve/shadow/delta");
        expect(JSON.parse(payload)).toMatchObject({ state: { open: true }, version: 2 });
      });

      test("never goes back to an older version under many quick changes, and ends at the newest", async () => {
        const shadow = shared.mesh.registry.add("pump", { version: 100 });
        const device = await connect("pump");
        await device.subscribe("pump/shadow/delta");
        device.forget();
        for (let n = 1; n <= 100; n++) {
          shadow.version = 100 + n;
          await shared.mesh.registry.publishUpdated("pump");
        }
        await eventually(() => bodies(device).at(-1)?.version === 200);
        const versions = bodies(device).map(({ version }) => version);
        expect(versions).toEqual(versions.toSorted((a, b) => a - b));
        expect(new Set(versions).size).toBe(versions.length);
      });

      test("of a device that was created again under the same id is published though its version is the same", async () => {
        const device = await connect("pump");
        await device.subscribe("pump/shadow/delta");
        shared.mesh.registry.add("pump", { version: 1, timestamp: 1, desired: { old: true } });
        await shared.mesh.registry.publishUpdated("pump");
        await device.awaitMessage(({ payload }) => payload.includes("old"));
        shared.mesh.registry.add("pump", { version: 1, timestamp: 2, desired: { young: true } });
        await shared.mesh.registry.publishUpdated("pump");
        await device.awaitMessage(({ payload }) => payload.includes("young"));
      });

      test("is made up for when the registry was away for a while", async () => {
        shared.mesh.registry.add("fan", { version: 7 });
        const device = await connect("fan");
        await device.subscribe("fan/shadow/delta");
        device.forget();
        await shared.mesh.registry.stopServing();
        await shared.mesh.registry.publishUpdated("fan");
        shared.mesh.registry.serveAgain();
        await device.awaitMessage(({ payload }) => payload.includes('"version":7'));
      });

      test("heals on connect after a bridge that died between the change and its publication", async () => {
        // Not known to be connected when the bridge starts, so that nothing but its connect leads to the publication.
        const shadow = shared.mesh.registry.add("lamp", { version: 20, online: false });
        const device = await connect("lamp");
        await shared.mesh.registry.publishUpdated("lamp");
        await shared.bridge.end("SIGKILL");
        shadow.version = 21;
        await shared.mesh.registry.publishUpdated("lamp");
        shared.bridge = await startBridge(shared.mesh);
        await device.subscribe("lamp/shadow/delta");
        await shared.mesh.registry.events.online({ id: "lamp", timestamp: now() });
        await device.awaitMessage(({ payload }) => payload.includes('"version":21'));
      });

      test("that changed while no bridge ran reaches a device that stayed connected, and a device that is not waits", async () => {
        const shadow = shared.mesh.registry.add("mast", { version: 30 });
        shared.mesh.registry.add("away", { version: 5, online: false });
        const device = await connect("mast");
        await device.subscribe("mast/shadow/delta");
        await shared.mesh.registry.publishUpdated("mast");
        await device.awaitMessage(({ payload }) => payload.includes('"version":30'));
        await shared.bridge.end("SIGKILL");
        shadow.version = 31;
        await shared.mesh.registry.publishUpdated("mast");
        shared.bridge = await startBridge(shared.mesh);
        await device.awaitMessage(({ payload }) => payload.includes('"version":31'));
        const away = await connect("away");
        expect(await away.subscribe("away/shadow/delta")).toBe(0);
        await device.publish("mast/shadow/get", "");
        expect(away.messages).toEqual([]);
      });

      test("is the newest in the end also when two replicas publish side by side", async () => {
        const shadow = shared.mesh.registry.add("fan", { version: 1_000 });
        const device = await connect("fan");
        await device.subscribe("fan/shadow/delta");
        await using _second = await startBridge(shared.mesh, { REPLICA_ID: "two" });
        for (let n = 1; n <= 100; n++) {
          shadow.version = 1_000 + n;
          await shared.mesh.registry.publishUpdated("fan");
        }
        await eventually(() => bodies(device).at(-1)?.version === 1_100);
        // A slower replica may have published an older one, which it then replaces.
        await eventually(async () => {
          device.forget();
          await device.subscribe("fan/shadow/delta");
          const { payload } = await device.awaitMessage(({ retained }) => retained, 1_000);
          expect(JSON.parse(payload)).toMatchObject({ version: 1_100 });
          return true;
        });
      });
    });
  });
}
