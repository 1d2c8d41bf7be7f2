import { eventually } from "@devmesh/testkit/eventually";
import type { TestMesh } from "@devmesh/testkit/mesh";
import { connectMqttDevice, type MqttDevice } from "@devmesh/testkit/mqtt-device";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { asMaster, type EnrolledDevice, enrolDevice } from "../../src/tenant.ts";

/** One leaked device password exposes one device: whatever `mallory` tries, `alice` keeps to herself. */
export function topicIsolation(shared: () => TestMesh): void {
  describe("topics of other devices", () => {
    let mesh: TestMesh;
    let alice: EnrolledDevice;
    let mallory: EnrolledDevice;
    let victim: MqttDevice;

    beforeAll(async () => {
      mesh = shared();
      alice = await enrolDevice(mesh, "alice");
      mallory = await enrolDevice(mesh, "mallory");
      victim = await alice.connect();
      await victim.answerRpc(() => ({ result: "from alice" }));
      await victim.subscribe("alice/shadow/#", 1);
    });
    afterAll(async () => {
      await victim?.leave();
    });

    const foreignFilters = [
      ..."alice alice/rpc alice/r/rpc alice/r/+/rpc alice/shadow alice/shadow/update alice/shadow/delta alice/shadow/get".split(
        " ",
      ),
      ..."alice/shadow/update/accepted alice/event/# alice/# alice/+ db/alice/# db/alice/temp db/# db/+/temp".split(
        " ",
      ),
      ..."# +/# +/rpc +/+/rpc +/shadow/# +/+ + /# mesh/# event/# queue/# _INBOX/# $MQTT/# $MQTT/msgs/# $MQTT/sub/#".split(
        " ",
      ),
      ..."$SYS/# $JS/# $JS/API/# $SRV/# $G/# alice/> > */rpc *.rpc alice/* db/*/temp db/> db.alice.>".split(
        " ",
      ),
      ..."$share/g/alice/rpc $share/g/# $queue/alice/rpc $aws/things/alice/shadow/update //alice/rpc mallory/rpc/#".split(
        " ",
      ),
    ];

    const foreignTopics = [
      ..."alice/rpc alice/r/rpc alice/shadow/update alice/shadow/get alice/shadow/delta alice/shadow".split(
        " ",
      ),
      ..."alice/shadow/update/accepted alice/event/alarm db/alice/temp db/alice db/mallory db/*/temp db/>".split(
        " ",
      ),
      ..."*/shadow/update */rpc > mallory/*/update mallory/rpc mallory/shadow/delta $MQTT/msgs/alice/shadow/update".split(
        " ",
      ),
      ..."$SYS/REQ/USER/AUTH $JS/API/STREAM/LIST mesh/keys/v1/verify event/keys/revoked/all _INBOX/x".split(
        " ",
      ),
    ];

    test("no filter of another device delivers anything of hers", async () => {
      const spied: string[] = [];
      for (const filter of foreignFilters) {
        const spy = await mallory.connect(`mallory:spy-${spied.length}`);
        spy.client.on("message", (topic, payload) => {
          spied.push(`${filter} brought ${topic}: ${payload.toString("utf8")}`);
        });
        // The broker answers 128, or closes the connection of one who sends what it cannot read.
        await spy.subscribe(filter, 1).catch(() => null);
        const master = asMaster(mesh);
        if (spy.client.connected) {
          expect((await master.post("devices/alice/rpc/ping", { at: filter })).json).toBe("from alice");
        }
        await spy.leave().catch(() => null);
      }
      const spies = await Promise.all(
        foreignFilters.map(async (filter, at) => {
          const spy = await mallory.connect(`mallory:again-${at}`);
          spy.client.on("message", (topic, payload) => {
            spied.push(`${filter} brought ${topic}: ${payload.toString("utf8")}`);
          });
          await spy.subscribe(filter, 0).catch(() => null);
          return spy;
        }),
      );
      await asMaster(mesh).post("devices/alice", { shadow: { state: { desired: { secret: 42 } } } });
      await victim.publish("alice/shadow/update", { state: { reported: { secret: 41 } } }, 1);
      await victim.publish("alice/event/alarm", { secret: true }, 1);
      await victim.publish("db/alice/temp", "secret", 1);
      await eventually(async () => (await asMaster(mesh).get("data?device_id=alice")).json.length > 0);
      await victim.awaitMessage(
        ({ topic, payload }) => topic === "alice/shadow/delta" && payload.includes("42"),
      );
      // Acknowledged is taken, not yet applied.
      await eventually(async () => {
        const { state } = (await asMaster(mesh).get("devices/alice")).json.shadow;
        return state.reported.secret === 41;
      });
      await Promise.all(spies.map((spy) => spy.leave().catch(() => null)));
      expect(spied).toEqual([]);
    });

    test("nothing that she publishes under foreign or reserved topics arrives anywhere", async () => {
      const master = asMaster(mesh);
      const before = (await master.get("devices/alice")).json.shadow;
      victim.forget();
      for (const [at, topic] of foreignTopics.entries()) {
        for (const qos of [0, 1] as const) {
          const forger = await mallory.connect(`mallory:forger-${at}-${qos}`);
          const forged = {
            id: 1,
            state: { reported: { forged: topic } },
            result: "forged",
            method: "forged",
            src: "x",
          };
          await Promise.race([forger.publish(topic, forged, qos).catch(() => null), forger.closed()]);
          await forger.leave().catch(() => null);
        }
      }
      const honest = await mallory.connect();
      await honest.publish("db/mallory/last", "honest", 1);
      await eventually(async () => (await master.get("data?filter=honest")).json.length === 1);
      await honest.leave();
      const records = (await master.get("data?limit=5000")).json;
      expect(records.filter(({ message }: { message: string }) => message.includes("forged"))).toEqual([]);
      expect((await master.get("devices/alice")).json.shadow).toEqual(before);
      expect(victim.messages.filter(({ payload }) => payload.includes("forged"))).toEqual([]);
    });

    describe("a connection is refused", () => {
      const login = () => ({ url: mesh.mqttUrl, id: "mallory", token: mallory.token });
      test.each([
        "alice",
        "alice:1",
        "rpc-bridge",
        "Mallory",
        "mallory.",
        "mallory:",
        "mallory:a b",
        "mallory:a.b",
        "mallory:*",
        "mallory:>",
        `mallory:${"x".repeat(65)}`,
        "mallory/1",
      ])("with the client id %p", async (clientId) => {
        await expect(connectMqttDevice({ ...login(), clientId })).rejects.toThrow();
        expect(victim.client.connected).toBe(true);
      });

      test("with another device's password, a wrong one, or an API key", async () => {
        for (const token of [alice.token, `dt_${"0".repeat(32)}`, mesh.masterKey, mallory.publicKey, ""]) {
          await expect(connectMqttDevice({ ...login(), token })).rejects.toThrow();
        }
      });

      test.each(["db", "#", "+", "*", ">", "alice", "$SYS", "rpc-bridge.devices", ""])(
        "with the user name %p",
        async (id) => {
          await expect(connectMqttDevice({ ...login(), id, clientId: "mallory" })).rejects.toThrow();
        },
      );
    });

    test("a device reaches all of its own topics, by its id and by a suffix, and with the wildcard", async () => {
      for (const clientId of ["mallory", "mallory:phone_1-a"]) {
        // The wrong logins above came from this address, so right ones wait their turn: one a second.
        const own = await eventually(() => mallory.connect(clientId), { everyMs: 250 });
        for (const filter of [
          "mallory/#",
          "mallory/rpc",
          "mallory/shadow/delta",
          "mallory/shadow/update/accepted",
        ]) {
          expect(await own.subscribe(filter, 1)).toBeLessThan(2);
        }
        await own.publish("mallory/shadow/get", "", 1);
        const { payload } = await own.awaitMessage("mallory/shadow");
        expect(JSON.parse(payload)).toMatchObject({ state: expect.any(Object), version: expect.any(Number) });
        await own.leave();
      }
    });
  });
}
