import { eventually } from "@devmesh/testkit/eventually";
import { startMesh, type TestMesh } from "@devmesh/testkit/mesh";
import { connectMqttDevice } from "@devmesh/testkit/mqtt-device";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { type RestClient, restClient } from "../src/rest-client.ts";
import { asMaster, enrolDevice } from "../src/tenant.ts";

let mesh: TestMesh;
let master: RestClient;
beforeAll(async () => {
  mesh = await startMesh();
  master = asMaster(mesh);
}, 60_000);
afterAll(async () => await mesh?.stop(), 60_000);

const recreate = async (id: string) =>
  await eventually(
    async () => {
      const answer = await master.post("devices", { id });
      if (answer.status === 201) return answer.json;
      expect([answer.status, answer.json.reason]).toEqual([409, "device_being_deleted"]);
      return null;
    },
    { withinMs: 30_000, everyMs: 250 },
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
}, 60_000);

test("a clean-up that a crash cut off is finished after the restart", async () => {
  const gone = await enrolDevice(mesh, "gone");
  const device = await gone.connect();
  await device.publish("db/gone/x", "1", 1);
  await eventually(async () => (await master.get("data?device_id=gone")).json.length === 1);
  expect((await master.delete("devices/gone")).status).toBe(204);
  await mesh.kill("devices", "SIGKILL");
  await eventually(async () => (await master.get("devices")).status === 200, { withinMs: 20_000 });
  await recreate("gone");
  expect((await master.get("data?device_id=gone")).json).toEqual([]);
}, 90_000);

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
  await eventually(async () => (await lock.asPublicKey.get("m/device")).status === 401, { withinMs: 5_000 });
  expect((await master.get("devices/lock/credentials")).json).toEqual({
    token: json.token,
    public_key: rotated.json.public_key,
  });
});

test("a deleted key stops working at once", async () => {
  const { json } = await master.post("keys", { name: "brief" });
  const brief = restClient(mesh.url, json.key);
  expect((await brief.get("devices")).status).toBe(200);
  await master.delete(`keys/${json.id}`);
  await eventually(async () => (await brief.get("devices")).status === 401, { withinMs: 5_000 });
});
