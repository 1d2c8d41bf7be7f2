import { eventually } from "@devmesh/testkit/eventually";
import type { TestMesh } from "@devmesh/testkit/mesh";
import { connectMqttDevice } from "@devmesh/testkit/mqtt-device";
import { beforeAll, describe, expect, test } from "@jest/globals";
import type { RestClient } from "../../src/rest-client.ts";
import { asMaster, type EnrolledDevice, enrolDevice } from "../../src/tenant.ts";

/** Presence of devices as the public API returns it, through everything that can happen to a connection. */
export function presence(shared: () => TestMesh): void {
  describe("presence", () => {
    let mesh: TestMesh;
    let master: RestClient;
    beforeAll(() => {
      mesh = shared();
      master = asMaster(mesh);
    });

    /** Waits until the device is shown as online or offline in all three places of the API. */
    const shown = async (id: string, online: boolean, withinMs = 20_000) =>
      await eventually(
        async () => {
          const { status, json } = await master.get(`devices/${id}`);
          if (status !== 200 || json.online !== online) return null;
          expect(json.shadow.state.reported.online).toBe(online);
          expect(json.shadow.metadata.reported).not.toHaveProperty("online");
          const listed = (await master.get(`devices?online=${online}`)).json;
          expect(listed).toEqual(expect.arrayContaining([expect.objectContaining({ id })]));
          return json;
        },
        { withinMs },
      );

    const enrol = async (...ids: string[]): Promise<EnrolledDevice[]> =>
      await Promise.all(ids.map((id) => enrolDevice(mesh, id)));

    test("a device is offline before its first connect, online with it, and was last seen when it left", async () => {
      const [gauge] = await enrol("gauge");
      expect(await shown("gauge", false)).toMatchObject({ last_seen: null, shadow: { version: 0 } });
      const device = await gauge?.connect();
      expect((await shown("gauge", true)).shadow.version).toBe(0);
      const leftAt = Date.now();
      await device?.leave();
      const left = await shown("gauge", false);
      expect(Date.parse(left.last_seen)).toBeGreaterThanOrEqual(leftAt - 5);
      expect(left.shadow.version).toBe(0);
    });

    test("a device that vanishes without a word is offline after one and a half times its keep-alive", async () => {
      const [silent] = await enrol("silent");
      const before = Date.now();
      const device = await connectMqttDevice(
        { url: mesh.mqttUrl, id: "silent", token: silent?.token ?? "" },
        { keepalive: 2 },
      );
      // Its TCP connection stays, as that of a device without power does; it just never says anything again.
      device.client.keepaliveManager?.destroy();
      await shown("silent", true);
      await device.closed();
      expect(Date.now() - before).toBeGreaterThanOrEqual(2_900);
      await shown("silent", false);
      await device[Symbol.asyncDispose]();
    });

    test("one of two connections that ends leaves the device online", async () => {
      const [twin] = await enrol("twin");
      const first = await twin?.connect("twin:1");
      const second = await twin?.connect("twin:2");
      await first?.leave();
      // After the end of the first: presence receives events in order.
      await eventually(async () => (await master.get("devices/twin")).json.online);
      await second?.leave();
      await shown("twin", false);
    });

    test("after a kill of the devices service it is known who came and who went meanwhile", async () => {
      const [stays, comes, goes] = await enrol("stays", "comes", "goes");
      const staying = await stays?.connect();
      const going = await goes?.connect();
      await shown("stays", true);
      await shown("goes", true);
      const pid = await mesh.pidOf("devices");
      await mesh.kill("devices");
      const coming = await comes?.connect();
      await going?.leave();
      await mesh.restarted("devices", pid);
      await shown("stays", true);
      await shown("comes", true);
      await shown("goes", false);
      await Promise.all([staying?.leave(), coming?.leave()]);
    });

    test("after a kill of nats-server a device that returns is online, and one that does not is offline", async () => {
      const [returns, lost] = await enrol("returns", "lost");
      const one = await returns?.connect();
      const two = await lost?.connect();
      await shown("returns", true);
      await shown("lost", true);
      const pid = await mesh.pidOf("nats-server");
      const closed = Promise.all([one?.closed(), two?.closed()]);
      await mesh.kill("nats-server");
      await closed;
      await mesh.restarted("nats-server", pid);
      const again = await eventually(() => returns?.connect().catch(() => null));
      await again.answerRpc(() => ({ result: "here" }));
      expect(Date.parse((await shown("lost", false, 80_000)).last_seen)).toBeGreaterThan(0);
      await shown("returns", true);
      expect((await master.get("devices/returns/rpc/Where")).json).toBe("here");
      expect((await master.get("devices/lost/rpc/Where")).json.reason).toBe("device_offline");
      await again.leave();
    }, 180_000);
  });
}
