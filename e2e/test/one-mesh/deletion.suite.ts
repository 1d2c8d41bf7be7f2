import { setTimeout as sleep } from "node:timers/promises";
import { eventually } from "@devmesh/testkit/eventually";
import type { TestMesh } from "@devmesh/testkit/mesh";
import { connectMqttDevice } from "@devmesh/testkit/mqtt-device";
import { openEventStream } from "@devmesh/testkit/notification-client";
import { beforeAll, describe, expect, test } from "@jest/globals";
import { type RestClient, restClient } from "../../src/rest-client.ts";
import { asMaster, enrolDevice } from "../../src/tenant.ts";

/** Deletion of devices, as clients see it. */
export function deletion(shared: () => TestMesh): void {
  describe("deletion", () => {
    let mesh: TestMesh;
    let master: RestClient;
    beforeAll(() => {
      mesh = shared();
      master = asMaster(mesh);
    });

    const recreate = async (id: string) =>
      await eventually(
        async () => {
          const answer = await master.post("devices", { id });
          if (answer.status === 201) return answer.json;
          expect([answer.status, answer.json.reason]).toEqual([409, "device_being_deleted"]);
          return null;
        },
        { everyMs: 250 },
      );

    test("deleting a device ends its connections and keys at once and leaves nothing for a later one of its id", async () => {
      const old = await enrolDevice(mesh, "door");
      const persistent = await connectMqttDevice(
        { url: mesh.mqttUrl, id: "door", token: old.token, clientId: "door:panel" },
        { clean: false },
      );
      await persistent.subscribe("door/shadow/delta", 1);
      await persistent.subscribe("door/#", 1);
      await persistent.publish("db/door/state", "open", 1, true);
      await persistent.publish("door/event/rung", { at: 1 }, 1, true);
      await persistent.leave();
      await master.post("devices/door", { shadow: { state: { desired: { secret: "old" } } } });
      const live = await old.connect();
      await eventually(async () => (await master.get("data?device_id=door")).json.length === 1);

      expect((await master.delete("devices/door")).status).toBe(204);
      await live.closed();
      expect((await old.asDeviceKey.get("device")).status).toBe(401);
      expect((await old.asPublicKey.get("m/device")).status).toBe(401);
      await expect(old.connect()).rejects.toThrow();
      expect((await master.get("devices/door")).status).toBe(404);
      expect((await master.delete("devices/door")).status).toBe(404);

      const fresh = await recreate("door");
      expect(fresh.shadow).toMatchObject({ state: { desired: {}, reported: {} } });
      expect((await master.get("data?device_id=door")).json).toEqual([]);
      const next = await connectMqttDevice(
        { url: mesh.mqttUrl, id: "door", token: fresh.token, clientId: "door:panel" },
        { clean: false },
      );
      await next.subscribe("door/#", 1);
      await next.publish("door/shadow/get", "", 1);
      await next.awaitMessage("door/shadow");
      expect(next.messages.filter(({ payload }) => /old|rung|open/.test(payload))).toEqual([]);
      expect((await old.asDeviceKey.get("device")).status).toBe(401);
      await next.leave();
    });

    test("the public key of a later device of an id is given nothing of the earlier one by the notification stream", async () => {
      const acl = { read: ["/state"], write: [], rpc: ["Open"], queries: {} };
      const old = await enrolDevice(mesh, "gate", acl);
      const device = await old.connect();
      await device.answerRpc(() => ({ result: 1 }));
      expect((await master.post("devices/gate/rpc/Open", { code: "old" })).status).toBe(200);
      expect((await master.delete("devices/gate")).status).toBe(204);
      await recreate("gate");
      await master.post("devices/gate", { acl });
      const { json: credentials } = await master.get("devices/gate/credentials");
      const next = await connectMqttDevice({ url: mesh.mqttUrl, id: "gate", token: credentials.token });
      await next.answerRpc(() => ({ result: 1 }));
      expect((await master.post("devices/gate/rpc/Open", { code: "new" })).status).toBe(200);

      const path = "/api/v2/m/device/notify?after=0";
      const client = await openEventStream(mesh.url, path, { key: credentials.public_key });
      await eventually(() => client.names().includes("rpc.in.Open"));
      const calls = client.frames.filter(({ name }) => name === "rpc.in.Open");
      expect(calls.map(({ data }) => data)).toEqual([{ code: "new" }]);
      expect(client.names()).not.toContain("deleted");
      const account = await openEventStream(mesh.url, "/api/v2/notify?after=0&device=gate", {
        key: mesh.masterKey,
      });
      await eventually(() => account.names().filter((name) => name === "rpc.in.Open").length === 2);
      for (const { leave } of [client, account]) leave();
      await next.leave();
    });

    test("a call under way to a device that is deleted ends at once as device_not_found, as does a later one", async () => {
      const mute = await enrolDevice(mesh, "mute");
      const device = await mute.connect();
      await device.answerRpc(() => null);
      const call = async () => await master.post("devices/mute/rpc/Sys.GetInfo?timeout=60000", {});
      await eventually(async () => (await master.get("devices/mute")).json.online === true);
      const underWay = call();
      await device.awaitMessage("mute/rpc");
      expect((await master.delete("devices/mute")).status).toBe(204);
      for (const { status, json } of [await underWay, await call()])
        expect([status, json.reason]).toEqual([404, "device_not_found"]);
    });

    test("of many devices that are deleted at once each call ends, and `deleted` comes, soon after the answer", async () => {
      // Before connections are closed a second time, 6 s after the deletion; it takes milliseconds on a quiet machine.
      const soonMs = 5_000;
      const ids = Array.from({ length: 12 }, (_, index) => `busy-${index}`);
      const stream = await openEventStream(mesh.url, "/api/v2/notify", { key: mesh.masterKey });
      const deletedAt = new Map<string, number>();
      const watching = new AbortController();
      const watch = eventually(
        () => {
          for (const { name, id } of stream.frames)
            if (name === "deleted" && id !== null && !deletedAt.has(id)) deletedAt.set(id, performance.now());
          return deletedAt.size === ids.length || watching.signal.aborted;
        },
        { everyMs: 5 },
      );
      const late = await Promise.all(
        ids.map(async (id) => {
          const device = await (await enrolDevice(mesh, id)).connect();
          await device.answerRpc(() => null);
          await eventually(async () => (await master.get(`devices/${id}`)).json.online === true);
          const callTo = async () => {
            const { status, json } = await master.post(`devices/${id}/rpc/Wait?timeout=60000`, {});
            return { outcome: `${status} ${json.reason}`, at: performance.now() };
          };
          const underWay = callTo();
          await device.awaitMessage(`${id}/rpc`);
          const deletion = master.delete(`devices/${id}`);
          // Calls that begin at any moment of the deletion.
          const during = await Promise.all(
            [0, 5, 10, 20, 40, 80, 160].map(async (ms) => {
              await sleep(ms);
              return callTo();
            }),
          );
          expect((await deletion).status).toBe(204);
          const answeredAt = performance.now();
          return { id, answeredAt, calls: [await underWay, ...during] };
        }),
      );
      await watch.finally(() => watching.abort());
      for (const { id, answeredAt, calls } of late) {
        expect(calls.map(({ outcome }) => outcome)).toEqual(calls.map(() => "404 device_not_found"));
        expect(Math.max(...calls.map(({ at }) => at)) - answeredAt).toBeLessThan(soonMs);
        expect((deletedAt.get(id) ?? Number.POSITIVE_INFINITY) - answeredAt).toBeLessThan(soonMs);
      }
      stream.leave();
    });

    test("a session of a new token stays open, however early the device gets to know the token", async () => {
      const sessions = await Promise.all(
        Array.from({ length: 6 }, async (_, index) => {
          const id = `rotated-${index}`;
          const { token, connect } = await enrolDevice(mesh, id);
          const old = await connect();
          const rotation = master.post(`devices/${id}/token`);
          const next = await eventually(
            async () => {
              const { json } = await master.get(`devices/${id}/credentials`);
              return json.token !== token && json.token;
            },
            { everyMs: 1 },
          );
          const session = await connectMqttDevice({ url: mesh.mqttUrl, id, token: next });
          await old.closed();
          expect((await rotation).json).toEqual({ token: next });
          return session;
        }),
      );
      let closed = 0;
      for (const { client } of sessions) client.on("close", () => closed++);
      // Connections are closed a second time 6 s after the rotation.
      await sleep(8_000);
      expect([closed, sessions.filter(({ client }) => client.connected).length]).toEqual([0, 6]);
      await Promise.all(sessions.map((session) => session.leave()));
    });

    test("a clean-up that a crash cut off is finished after the restart", async () => {
      const gone = await enrolDevice(mesh, "gone");
      const device = await gone.connect();
      await device.publish("db/gone/x", "1", 1);
      await eventually(async () => (await master.get("data?device_id=gone")).json.length === 1);
      expect((await master.delete("devices/gone")).status).toBe(204);
      await mesh.kill("devices", "SIGKILL");
      await eventually(async () => (await master.get("devices")).status === 200);
      await recreate("gone");
      expect((await master.get("data?device_id=gone")).json).toEqual([]);
    });

    test("rotating the token closes the sessions and refuses the old password; the public key likewise", async () => {
      const lock = await enrolDevice(mesh, "lock");
      const session = await lock.connect();
      const { json, status } = await master.post("devices/lock/token");
      expect([status, Object.keys(json)]).toEqual([200, ["token"]]);
      await session.closed();
      await expect(lock.connect()).rejects.toThrow();
      const again = await connectMqttDevice({ url: mesh.mqttUrl, id: "lock", token: json.token });
      await again.leave();

      expect((await lock.asPublicKey.get("m/device")).status).toBe(200);
      const rotated = await master.post("devices/lock/public_key");
      expect(Object.keys(rotated.json)).toEqual(["public_key"]);
      await eventually(async () => (await lock.asPublicKey.get("m/device")).status === 401);
      expect((await master.get("devices/lock/credentials")).json).toEqual({
        token: json.token,
        public_key: rotated.json.public_key,
      });
    });

    test("no will is published of a session that a rotation or a deletion closes, and a session of the new token stays", async () => {
      const { token } = await enrolDevice(mesh, "safe");
      const stream = await openEventStream(mesh.url, "/api/v2/notify", { key: mesh.masterKey });
      const wills = {
        "safe/shadow/update": '{"state":{"desired":{"will":1},"reported":{"will":1}}}',
        "db/safe/will": "will",
        "safe/event/will": "{}",
      };
      const openWithWills = async (password: string) =>
        await Promise.all(
          Object.entries(wills).map(([topic, text], index) =>
            connectMqttDevice(
              { url: mesh.mqttUrl, id: "safe", token: password, clientId: `safe:${index}` },
              { will: { topic, payload: Buffer.from(text), qos: 1 } },
            ),
          ),
        );
      const old = await openWithWills(token);
      const rotated = (await master.post("devices/safe/token")).json.token;
      await Promise.all(old.map((session) => session.closed()));

      const next = await connectMqttDevice({ url: mesh.mqttUrl, id: "safe", token: rotated });
      await next.publish("safe/event/sign", {}, 1);
      await next.publish("db/safe/sign", "sign", 1);
      await next.publish("safe/shadow/update", { state: { reported: { sign: 1 } } }, 1);
      const device = await eventually(async () => {
        const { json } = await master.get("devices/safe");
        return json.shadow.version > 0 && json;
      });
      expect(device.shadow).toMatchObject({
        version: 1,
        state: { desired: {}, reported: { sign: 1, online: true } },
      });
      const records = await eventually(async () => {
        const { json } = await master.get("data?device_id=safe");
        return json.length > 0 && json;
      });
      expect(records.map(({ topic }: { topic: string }) => topic)).toEqual(["db/safe/sign"]);
      await eventually(() => stream.frames.some(({ name }) => name === "rpc.out.sign"));
      expect(next.client.connected).toBe(true);

      const late = await openWithWills(rotated);
      expect((await master.delete("devices/safe")).status).toBe(204);
      await Promise.all([next, ...late].map((session) => session.closed()));
      const again = await recreate("safe");
      expect(again.shadow).toMatchObject({ version: 0, state: { desired: {}, reported: {} } });
      expect((await master.get("data?device_id=safe")).json).toEqual([]);
      expect(stream.frames.map(({ name }) => name).filter((name) => name.startsWith("rpc.out."))).toEqual([
        "rpc.out.sign",
      ]);
      stream.leave();
    });

    test("a deleted key stops working at once", async () => {
      const { json } = await master.post("keys", { name: "brief" });
      const brief = restClient(mesh.url, json.key);
      expect((await brief.get("devices")).status).toBe(200);
      await master.delete(`keys/${json.id}`);
      await eventually(async () => (await brief.get("devices")).status === 401);
    });
  });
}
