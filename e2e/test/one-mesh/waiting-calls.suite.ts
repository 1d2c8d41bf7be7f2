import { eventually } from "@devmesh/testkit/eventually";
import type { TestMesh } from "@devmesh/testkit/mesh";
import { openEventStream } from "@devmesh/testkit/notification-client";
import { beforeAll, describe, expect, test } from "@jest/globals";
import type { RestClient } from "../../src/rest-client.ts";
import { asMaster, enrolDevice } from "../../src/tenant.ts";

/** Calls that wait for their device, through the whole mesh. */
export function waitingCalls(shared: () => TestMesh): void {
  describe("calls that wait", () => {
    let mesh: TestMesh;
    let master: RestClient;
    beforeAll(() => {
      mesh = shared();
      master = asMaster(mesh);
    });
    const ended = (path: string, client = master) =>
      eventually(async () => {
        const { json } = await client.get(path);
        return json.ended_at === null ? null : json;
      });

    test("a call to a sleeping device is answered when it connects, also over the death of all services", async () => {
      const sleeper = await enrolDevice(mesh, "sleeper");
      const stored = await master.post("devices/sleeper/rpc/Echo?wait=PT1H", { on: true });
      expect([stored.status, stored.json.state]).toEqual([202, "queued"]);
      expect(stored.headers.get("location")).toBe(`/api/v2/executions/${stored.json.id}`);
      const services = ["jobs", "rpc-bridge", "devices"] as const;
      const pids = await Promise.all(services.map((service) => mesh.pidOf(service)));
      await Promise.all(services.map((service) => mesh.kill(service)));
      await Promise.all(services.map((service, nth) => mesh.restarted(service, pids[nth] ?? 0)));
      const device = await eventually(() => sleeper.connect());
      const received: unknown[] = [];
      await device.answerRpc(({ params }) => {
        received.push(params);
        return { result: { done: params } };
      });
      const execution = await ended(`executions/${stored.json.id}`);
      expect(execution).toMatchObject({
        device_id: "sleeper",
        state: "succeeded",
        attempts: 1,
        result: { done: { on: true } },
        created_by: { kind: "master" },
      });
      expect(received).toEqual([{ on: true }]);
      expect((await master.get("devices/sleeper/executions?state=succeeded")).json).toEqual([execution]);
      await device.leave();
    }, 120_000);

    test("a device that is connected and subscribes later gets its call once", async () => {
      const late = await enrolDevice(mesh, "late");
      await using device = await late.connect();
      const { json } = await master.post("devices/late/rpc/Echo?wait=PT1H");
      await eventually(async () => (await master.get("devices/late")).json.online);
      let calls = 0;
      await device.answerRpc(() => {
        calls++;
        return { error: { code: 404, message: "none" } };
      });
      expect(await ended(`executions/${json.id}`)).toMatchObject({
        state: "failed",
        reason: "function_not_found",
      });
      expect(calls).toBe(1);
    });

    test("a public key waits for what the ACL lists, reads only calls of its kind, and receives their frames", async () => {
      const own = await enrolDevice(mesh, "own", { rpc: ["Open"], read: ["/state"] });
      const refused = await own.asPublicKey.post("m/device/rpc/Shut?wait=PT1H");
      expect([refused.status, refused.json.reason]).toEqual([403, "rpc_not_permitted"]);
      const stream = await openEventStream(mesh.url, "/api/v2/m/device/notify", { key: own.publicKey });
      const ofMaster = await master.post("devices/own/rpc/Open?wait=PT1H");
      const ofKey = await own.asPublicKey.post("m/device/rpc/Open?wait=PT1H");
      expect(ofKey.headers.get("location")).toBe(`/api/v2/m/device/executions/${ofKey.json.id}`);
      expect((await own.asPublicKey.get(`m/device/executions/${ofMaster.json.id}`)).status).toBe(404);
      expect((await own.asPublicKey.get(`m/device/executions/${ofKey.json.id}`)).json).toEqual(ofKey.json);
      await eventually(() => stream.frames.some(({ name }) => name === "execution"));
      const heard = stream.frames.filter(({ name }) => name === "execution").map(({ data }) => data);
      expect(heard).toEqual([ofKey.json]);
      stream.leave();
      const cancelled = await master.post(`executions/${ofKey.json.id}`, { state: "cancelled" });
      expect(cancelled.json).toMatchObject({ state: "cancelled", reason: "by_request", attempts: 0 });
      const again = await master.post(`executions/${ofKey.json.id}`, { state: "cancelled" });
      expect([again.status, again.json.reason]).toEqual([409, "execution_ended"]);
    });

    test("bad input is refused with the place, and nothing is stored", async () => {
      await enrolDevice(mesh, "strict");
      const statusOf = async (query: string) =>
        (await master.post(`devices/strict/rpc/Echo?${query}`)).status;
      for (const query of ["wait=1h", "wait=PT0S", "wait=P91D", "wait=PT1H&attempts=0", "attempts=2"])
        expect([query, await statusOf(query)]).toEqual([query, 400]);
      const large = await master.post("devices/strict/rpc/Echo?wait=PT1H", ["x".repeat(17_000)]);
      expect([large.status, large.json.reason]).toEqual([413, "frame_too_large"]);
      const unknown = await master.post("devices/nobody/rpc/Echo?wait=PT1H");
      expect([unknown.status, unknown.json.reason]).toEqual([404, "device_not_found"]);
      expect((await master.get("devices/strict/executions")).json).toEqual([]);
    });

    test("a deletion ends what waits, and a new device of that id has no work", async () => {
      await enrolDevice(mesh, "phoenix");
      const { json } = await master.post("devices/phoenix/rpc/Echo?wait=PT1H");
      await master.send("DELETE", "devices/phoenix");
      expect(await ended(`executions/${json.id}`)).toMatchObject({
        state: "cancelled",
        reason: "device_deleted",
      });
      const reborn = await eventually(() => enrolDevice(mesh, "phoenix"));
      await using device = await reborn.connect();
      await device.answerRpc(() => ({ result: 1 }));
      const next = await master.post("devices/phoenix/rpc/Echo?wait=PT1H");
      await ended(`executions/${next.json.id}`);
      expect(device.messages).toHaveLength(1);
      expect((await master.get("devices/phoenix/executions")).json).toHaveLength(1);
    }, 120_000);
  });
}
