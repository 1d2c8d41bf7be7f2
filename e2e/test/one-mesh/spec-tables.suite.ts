import { eventually } from "@devmesh/testkit/eventually";
import type { TestMesh } from "@devmesh/testkit/mesh";
import type { MqttDevice } from "@devmesh/testkit/mqtt-device";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { RestClient } from "../../src/rest-client.ts";
import { asAnyone, asMaster, type EnrolledDevice, enrolDevice, registerCustomer } from "../../src/tenant.ts";

/** Each row of the endpoint tables of the specification, against the running mesh with a real device. */
export function specTables(shared: () => TestMesh): void {
  describe("the endpoint tables of the specification", () => {
    let mesh: TestMesh;
    let master: RestClient;
    let pump: EnrolledDevice;
    let device: MqttDevice;

    beforeAll(async () => {
      mesh = shared();
      master = asMaster(mesh);
      pump = await enrolDevice(mesh, "pump-1", {
        read: ["/state/desired/app", "/state/reported/app", "/state/reported/online"],
        write: ["/state/desired/app"],
        rpc: ["sum"],
        queries: { temperatures: { topic: "temp/#", limit: 2, order: "desc" } },
      });
      device = await pump.connect();
      await device.answerRpc(({ method, params }) => {
        if (method === "sum" && Array.isArray(params))
          return { result: Number(params[0]) + Number(params[1]) };
        if (method === "Sys.GetInfo") return { result: { app: "pump", params: params ?? null } };
        return { error: { code: 404, message: `No handler for ${method}` } };
      });
    });
    afterAll(async () => {
      await device?.leave();
    });

    describe("customer registration", () => {
      test("GET /newcustomer mails the confirmation link and the access token to the address", async () => {
        const invitation = await registerCustomer(mesh, "ann@example.com");
        expect(invitation.token).toMatch(/^ck_/);
        const page = await fetch(invitation.link);
        expect(page.status).toBe(200);
        expect(page.headers.get("content-type")).toContain("text/html");
      });
    });

    describe("customer access API", () => {
      test("GET and POST /api/v2/customer read the customer and replace its meta", async () => {
        const { asCustomer } = await registerCustomer(mesh, "bob@example.com");
        const before = await asCustomer.get("customer");
        expect(before.json).toMatchObject({ email: "bob@example.com", meta: {} });
        const after = await asCustomer.post("customer", { ...before.json, meta: { pumps: ["pump-1"] } });
        expect(after.json).toMatchObject({ id: before.json.id, meta: { pumps: ["pump-1"] } });
        expect((await asCustomer.get("/customer")).json).toEqual(after.json);
      });
    });

    describe("device access API", () => {
      test("GET /api/v2/m/device answers the device cut by its ACL", async () => {
        await master.post("devices/pump-1", {
          shadow: { state: { desired: { app: { on: true }, secret: 1 }, reported: { app: { on: false } } } },
        });
        expect((await pump.asPublicKey.get("m/device")).json).toEqual({
          id: "pump-1",
          shadow: {
            state: { desired: { app: { on: true } }, reported: { app: { on: false }, online: true } },
          },
        });
      });

      test("POST /api/v2/m/device changes the shadow according to the ACL and nothing else", async () => {
        const allowed = await pump.asPublicKey.post("m/device", {
          shadow: { state: { desired: { app: { speed: 3 } } } },
        });
        expect(allowed.json.shadow.state.desired.app).toMatchObject({ speed: 3 });
        const refused = await pump.asPublicKey.post("m/device", {
          shadow: { state: { desired: { app: { speed: 9 }, secret: 2 } } },
        });
        expect(refused.status).toBe(403);
        expect(refused.json.pointers).toEqual(["/shadow/state/desired/secret"]);
        expect((await master.get("devices/pump-1")).json.shadow.state.desired).toMatchObject({
          app: { speed: 3 },
          secret: 1,
        });
      });

      test("GET /api/v2/m/device/data/:name answers the records that the named query selects", async () => {
        for (const value of [1, 2, 3]) await device.publish("db/pump-1/temp/in", `${value}`, 1);
        await device.publish("db/pump-1/other", "no", 1);
        const records = await eventually(async () => {
          const { json } = await pump.asPublicKey.get("m/device/data/temperatures");
          return json.length === 2 && json[0].message === "3" ? json : null;
        });
        expect(records.map(({ message }: { message: string }) => message)).toEqual(["3", "2"]);
        expect((await pump.asPublicKey.get("m/device/data/unknown")).status).toBe(404);
      });

      test("POST /api/v2/m/device/rpc/:func calls what the ACL lists and refuses the rest", async () => {
        expect((await pump.asPublicKey.post("m/device/rpc/sum", [2, 3])).json).toBe(5);
        const refused = await pump.asPublicKey.post("m/device/rpc/Sys.GetInfo");
        expect([refused.status, refused.json.reason]).toEqual([403, "rpc_not_permitted"]);
      });
    });

    describe("master key API", () => {
      test("GET, POST and DELETE /devices list, create and delete", async () => {
        const created = await master.post("devices");
        expect(created.status).toBe(201);
        expect(created.headers.get("location")).toBe(`/api/v2/devices/${created.json.id}`);
        expect(created.json).toMatchObject({
          online: false,
          name: null,
          token: expect.stringMatching(/^dt_/),
        });
        const ids = async () => (await master.get("devices")).json.map(({ id }: { id: string }) => id);
        expect(await ids()).toEqual(["pump-1", created.json.id]);
        expect((await master.delete(`devices/${created.json.id}`)).status).toBe(204);
        expect(await ids()).toEqual(["pump-1"]);
      });

      test("POST /devices/:id merges the shadow, answers the device, and the device gets the delta", async () => {
        await device.subscribe("pump-1/shadow/delta", 1);
        const answer = await master.post("devices/pump-1", {
          name: "Pump",
          shadow: { state: { desired: { valve: "open" } }, tags: { labels: ["cellar"] } },
        });
        expect(answer.json).toMatchObject({ name: "Pump", shadow: { tags: { labels: ["cellar"] } } });
        const delta = await device.awaitMessage(
          ({ topic, payload }) => topic === "pump-1/shadow/delta" && payload.includes("valve"),
        );
        expect(JSON.parse(delta.payload)).toMatchObject({
          state: { valve: "open" },
          version: answer.json.shadow.version,
        });
        await device.publish("pump-1/shadow/update", { state: { reported: { valve: "open" } } }, 1);
        await eventually(async () => {
          const { shadow } = (await master.get("devices/pump-1")).json;
          return shadow.state.reported.valve === "open" && !("valve" in (shadow.state.delta ?? {}));
        });
      });

      test("POST and GET /devices/:id/rpc/:func call a function with and without parameters", async () => {
        expect((await master.post("devices/pump-1/rpc/sum", [2, 3])).json).toBe(5);
        expect((await master.get("devices/pump-1/rpc/Sys.GetInfo")).json).toEqual({
          app: "pump",
          params: null,
        });
      });

      test("GET, POST and DELETE /keys list, create and delete", async () => {
        const created = await master.post("keys", { name: "second" });
        expect([created.status, created.json.access]).toEqual([201, "full"]);
        const listed = await master.get("keys");
        expect(listed.json).toContainEqual(
          expect.objectContaining({ id: created.json.id, key: created.json.key }),
        );
        expect((await master.delete(`keys/${created.json.id}`)).status).toBe(204);
        const { json } = await master.get("keys");
        expect(json.map(({ id }: { id: string }) => id)).not.toContain(created.json.id);
      });

      test("GET /data takes skip, limit and filter", async () => {
        for (const at of [1, 2, 3, 4]) await device.publish("db/pump-1/count", `n${at}`, 1);
        const texts = async (query: string) =>
          (await master.get(`data?filter=pump-1/count&${query}`)).json.map(
            ({ message }: { message: string }) => message,
          );
        await eventually(async () => (await texts("limit=10")).length === 4);
        expect(await texts("skip=1&limit=2")).toEqual(["n2", "n3"]);
        expect(await texts("skip=-2")).toEqual(["n3", "n4"]);
        expect((await master.get("data?limit=5001")).status).toBe(400);
      });
    });

    describe("device key API", () => {
      test("GET /device answers the app sections alone", async () => {
        const { json } = await pump.asDeviceKey.get("device");
        expect(Object.keys(json).sort()).toEqual(["id", "shadow"]);
        expect(json.shadow).toEqual({
          state: { desired: { app: expect.any(Object) }, reported: { app: expect.any(Object) } },
        });
      });

      test("POST /device changes the app sections and refuses any other member whole", async () => {
        const written = await pump.asDeviceKey.post("device", {
          shadow: { state: { desired: { app: { level: 7 } } } },
        });
        expect(written.json.shadow.state.desired.app).toMatchObject({ level: 7 });
        const refused = await pump.asDeviceKey.post("device", {
          name: "mine",
          shadow: { state: { desired: { app: { level: 8 }, valve: "shut" } } },
        });
        expect(refused.status).toBe(403);
        expect(refused.json.pointers.sort()).toEqual(["/name", "/shadow/state/desired/valve"]);
        expect((await pump.asDeviceKey.get("device")).json.shadow.state.desired.app.level).toBe(7);
      });

      test("GET /data answers only the topics below db/<device_id>/", async () => {
        const other = await enrolDevice(mesh, "pump-10");
        const foreign = await other.connect();
        await foreign.publish("db/pump-10/count", "foreign", 1);
        await foreign.leave();
        await eventually(async () => (await master.get("data?filter=foreign")).json.length === 1);
        const own = (await pump.asDeviceKey.get("data?limit=5000")).json;
        expect(own.length).toBeGreaterThan(0);
        expect(own.every(({ topic }: { topic: string }) => topic.startsWith("db/pump-1/"))).toBe(true);
        expect((await pump.asDeviceKey.get("data?filter=foreign")).json).toEqual([]);
      });
    });

    describe("authentication", () => {
      test("a key counts in the header and in the query, and two different ones are refused", async () => {
        const anyone = asAnyone(mesh);
        expect((await anyone.get(`devices?access_token=${mesh.masterKey}`)).status).toBe(200);
        expect((await master.get(`devices?access_token=${mesh.masterKey}`)).status).toBe(200);
        expect((await master.get(`devices?access_token=${pump.deviceKey}`)).status).toBe(400);
        const refused = await anyone.get("devices");
        expect([refused.status, refused.headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
        expect(refused.json.error).toEqual({ code: 401, message: expect.any(String) });
      });
    });
  });
}
