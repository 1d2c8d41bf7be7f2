import { eventually } from "@devmesh/testkit/eventually";
import type { TestMesh } from "@devmesh/testkit/mesh";
import type { MqttDevice } from "@devmesh/testkit/mqtt-device";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { RestClient } from "../../src/rest-client.ts";
import { asMaster, type EnrolledDevice, enrolDevice } from "../../src/tenant.ts";

/** The device's side of its shadow: what it receives, what it may send, and what survives a crash. */
export function shadow(shared: () => TestMesh): void {
  describe("the device's side of its shadow", () => {
    let mesh: TestMesh;
    let master: RestClient;
    let boiler: EnrolledDevice;
    beforeAll(async () => {
      mesh = shared();
      master = asMaster(mesh);
      boiler = await enrolDevice(mesh, "boiler");
    });

    const desire = async (id: string, desired: object | null) => {
      const answer = await master.post(`devices/${id}`, { shadow: { state: { desired } } });
      expect(answer.status).toBe(200);
      return answer.json.shadow;
    };

    /** Deltas so far, in order. */
    const deltas = (device: MqttDevice) =>
      device.messages
        .filter(({ topic }) => topic === `${device.id}/shadow/delta`)
        .map(({ payload, retained }) => ({ ...JSON.parse(payload), retained }));

    const deltaOfVersion = async (device: MqttDevice, version: number, withinMs = 15_000) =>
      await eventually(() => deltas(device).findLast((delta) => delta.version === version), { withinMs });

    /**
     * The retained delta. An answer over REST does not wait for it, and an earlier subscription gets a message of its
     * own, so this subscribes again.
     */
    const keptDelta = async (device: MqttDevice, version: number) =>
      await eventually(
        async () => {
          await device.subscribe(`${device.id}/shadow/delta`, 1);
          return deltas(device).find((delta) => delta.version === version && delta.retained);
        },
        { everyMs: 200 },
      );

    const answerTo = async (device: MqttDevice, update: object, qos: 0 | 1 | 2 = 1) => {
      const clientToken = `t-${Math.random()}`;
      await device.publish(`${device.id}/shadow/update`, { ...update, clientToken }, qos);
      const { topic, payload } = await device.awaitMessage(
        ({ topic, payload }) => /update\/(accepted|rejected)$/.test(topic) && payload.includes(clientToken),
        15_000,
      );
      return { kind: topic.split("/").at(-1), ...JSON.parse(payload) };
    };

    describe("the delta", () => {
      test("comes on subscribing, on each change, and is an empty state, never an empty payload, when nothing differs", async () => {
        const device = await boiler.connect();
        await device.subscribe("boiler/shadow/delta", 1);
        expect(await deltaOfVersion(device, 0)).toMatchObject({ state: {}, metadata: {} });
        expect(await keptDelta(device, 0)).toMatchObject({ state: {}, metadata: {} });

        const shadow = await desire("boiler", { target: 60, pump: { on: true } });
        expect(await deltaOfVersion(device, 1)).toEqual({
          state: { target: 60, pump: { on: true } },
          metadata: shadow.metadata.desired,
          version: 1,
          timestamp: shadow.timestamp,
          retained: false,
        });
        await device.subscribe("boiler/shadow/update/accepted", 1);
        await device.subscribe("boiler/shadow/update/rejected", 1);
        await answerTo(device, { state: { reported: { target: 60 } } });
        expect(await deltaOfVersion(device, 2)).toMatchObject({ state: { pump: { on: true } } });
        await answerTo(device, { state: { reported: { pump: { on: true } } } });
        expect(await deltaOfVersion(device, 3)).toMatchObject({ state: {} });
        await desire("boiler", null);
        expect(await deltaOfVersion(device, 4)).toMatchObject({ state: {} });
        expect(device.messages.map(({ payload }) => payload)).not.toContain("");
        await device.leave();
      });

      test("of a change made while the device was away comes when it is back", async () => {
        const { version } = await desire("boiler", { target: 70 });
        const device = await boiler.connect();
        await device.subscribe("boiler/shadow/delta");
        expect(await deltaOfVersion(device, version)).toMatchObject({ state: { target: 70 } });
        expect(await keptDelta(device, version)).toMatchObject({ state: { target: 70 } });
        await device.leave();
      });

      test("of a change made while the bridge was dead reaches a device that stayed connected", async () => {
        const device = await boiler.connect();
        await device.subscribe("boiler/shadow/delta");
        const pid = await mesh.pidOf("rpc-bridge");
        await mesh.kill("rpc-bridge");
        const { version } = await desire("boiler", { target: 80 });
        await mesh.restarted("rpc-bridge", pid);
        expect(await deltaOfVersion(device, version, 30_000)).toMatchObject({ state: { target: 80 } });
        await device.leave();
      });

      test("is that of the store after a kill of the devices service between writes, once the device has come back", async () => {
        const pid = await mesh.pidOf("devices");
        const writes = Array.from({ length: 60 }, (_, n) =>
          master
            .post("devices/boiler", { shadow: { state: { desired: { n } } } })
            .then(({ status }) => status),
        );
        await Promise.race(writes);
        await mesh.kill("devices");
        expect(await Promise.all(writes)).toContain(200);
        await mesh.restarted("devices", pid);
        const { shadow } = await eventually(async () => {
          const { status, json } = await master.get("devices/boiler");
          return status === 200 && !json.online ? json : null;
        });
        const device = await boiler.connect();
        await device.subscribe("boiler/shadow/delta");
        expect(await deltaOfVersion(device, shadow.version, 30_000)).toMatchObject({
          state: shadow.state.delta,
        });
        await device.leave();
      });
    });

    describe("an update of a device", () => {
      let device: MqttDevice;
      beforeAll(async () => {
        device = await boiler.connect();
        for (const topic of ["shadow", "shadow/update/accepted", "shadow/update/rejected"])
          await device.subscribe(`boiler/${topic}`, 1);
      });
      afterAll(async () => await device?.leave());

      test.each([0, 1, 2] as const)(
        "at QoS %i steps the version by one and is read back on ID/shadow",
        async (qos) => {
          const { version: before } = (await master.get("devices/boiler")).json.shadow;
          const answer = await answerTo(device, { state: { reported: { qos } } }, qos);
          expect(answer).toMatchObject({
            kind: "accepted",
            state: { reported: { qos } },
            version: before + 1,
          });
          device.forget();
          await device.publish("boiler/shadow/get", "");
          const { payload } = await device.awaitMessage("boiler/shadow");
          const { shadow } = (await master.get("devices/boiler")).json;
          const { state, version, timestamp } = shadow;
          expect(JSON.parse(payload)).toEqual({ state, version, timestamp });
        },
      );

      test.each([
        ["of reported.online", { state: { reported: { online: true } } }, 400],
        ["of the delta", { state: { delta: { a: 1 } } }, 403],
        ["of the tags", { state: {}, tags: { a: 1 } }, 403],
        ["of the name", { state: {}, name: "x" }, 403],
        ["with another version", { state: { reported: { a: 1 } }, version: 100_000 }, 409],
        ["without a state", { reported: { a: 1 } }, 400],
        ["over 32 KB", { state: { reported: { a: "x".repeat(33_000) } } }, 413],
        [
          "deeper than ten levels",
          { state: { reported: JSON.parse(`${'{"a":'.repeat(11)}1${"}".repeat(11)}`) } },
          400,
        ],
      ])("%s is rejected whole", async (_what, update, code) => {
        const { version } = (await master.get("devices/boiler")).json.shadow;
        expect(await answerTo(device, update)).toMatchObject({
          kind: "rejected",
          code,
          message: expect.any(String),
        });
        expect((await master.get("devices/boiler")).json.shadow.version).toBe(version);
      });

      test("that the broker acknowledged while the devices service was dead is applied when it is back, in order", async () => {
        const pid = await mesh.pidOf("devices");
        await mesh.kill("devices");
        for (const step of [1, 2, 3]) {
          await device.publish(
            "boiler/shadow/update",
            { state: { reported: { step, [`s${step}`]: step } } },
            1,
          );
        }
        await mesh.restarted("devices", pid);
        const { reported } = await eventually(async () => {
          const { status, json } = await master.get("devices/boiler");
          return status === 200 && json.shadow.state.reported.s3 === 3 ? json.shadow.state : null;
        });
        expect(reported).toMatchObject({ step: 3, s1: 1, s2: 2, s3: 3 });
      });
    });
  });
}
