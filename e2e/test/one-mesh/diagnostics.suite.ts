import type { Diagnosis, UnknownDevice } from "@devmesh/contracts/model/diagnostics";
import { eventually } from "@devmesh/testkit/eventually";
import type { TestMesh } from "@devmesh/testkit/mesh";
import { connectMqttDevice } from "@devmesh/testkit/mqtt-device";
import { openWebSocket } from "@devmesh/testkit/notification-client";
import { beforeAll, describe, expect, test } from "@jest/globals";
import type { RestClient } from "../../src/rest-client.ts";
import { asMaster, type EnrolledDevice, enrolDevice } from "../../src/tenant.ts";

/** Only the supervisor's own broker has its log read (ADR 25). */
const ofOwnBroker = process.env.DEVMESH_E2E_BROKER === "cluster" ? test.skip : test;

/** Why a device does not connect, as REST and the notification stream show it (api.md, Diagnostics). */
export function diagnostics(shared: () => TestMesh): void {
  describe("diagnostics", () => {
    let mesh: TestMesh;
    let master: RestClient;
    beforeAll(() => {
      mesh = shared();
      master = asMaster(mesh);
    });

    const login = (id: string, token: string, clientId = id) =>
      connectMqttDevice({ url: mesh.mqttUrl, id, token, clientId });
    const historyOf = async (id: string): Promise<Diagnosis[]> =>
      (await master.get(`devices/${id}/diagnostics`)).json;

    /** The newest entry that has these members, once there is one. */
    const entry = (id: string, members: Partial<Diagnosis>) =>
      eventually(async () =>
        (await historyOf(id)).find((one) =>
          Object.entries(members).every(([name, value]) => one[name as keyof Diagnosis] === value),
        ),
      );

    test("name why a login was refused, and from where, also in the notification stream", async () => {
      const pump = await enrolDevice(mesh, "diagnosed");
      const stream = await openWebSocket(mesh.url, "/api/v2/notify?device=diagnosed", {
        key: mesh.masterKey,
      });
      expect(await historyOf(pump.id)).toEqual([]);
      await expect(login(pump.id, `dt_${"0".repeat(32)}`)).rejects.toThrow();
      const wrong = await entry(pump.id, { name: "login_refused", reason: "wrong_password" });
      expect(wrong).toMatchObject({ address: "127.0.0.1", client_id: "diagnosed", topic: null });
      await expect(login(pump.id, pump.token, "other")).rejects.toThrow();
      await entry(pump.id, { name: "login_refused", reason: "wrong_client_id", client_id: "other" });
      const { name: _, ...data } = wrong;
      await eventually(() => stream.frames.some((frame) => frame.name === "login_refused"));
      expect(stream.frames.find((frame) => frame.name === "login_refused")).toMatchObject({
        id: "diagnosed",
        data,
      });
      stream.leave();
    });

    test("show connections with their address, takeovers and ends", async () => {
      const pump = await enrolDevice(mesh, "taken");
      await using first = await pump.connect();
      await using second = await pump.connect();
      await first.closed();
      await entry(pump.id, { name: "session_taken_over", client_id: "taken", address: "127.0.0.1" });
      await entry(pump.id, { name: "connected", count: 2 });
      await second.leave();
      await entry(pump.id, { name: "disconnected", reason: "client_closed" });
    });

    test("show that the mesh ended a session, not another login, where a token is rotated", async () => {
      const pump = await enrolDevice(mesh, "rotated");
      await using device = await pump.connect();
      expect((await master.post("devices/rotated/token")).status).toBe(200);
      await device.closed();
      await entry(pump.id, { name: "disconnected", reason: "ended_by_mesh" });
      expect((await historyOf(pump.id)).map(({ name }) => name)).not.toContain("session_taken_over");
    });

    test("show what services could not take of what the device published", async () => {
      const pump = await enrolDevice(mesh, "talker");
      await using device = await pump.connect();
      await device.publish("talker/event/broken", "{", 1);
      await device.publish("talker/event/late", '{"ns":1738329123456789013}', 1);
      await device.publish("db/talker/large", "x".repeat(300_000), 1);
      await entry(pump.id, { name: "publication_refused", reason: "not_json", topic: "talker/event/broken" });
      const late = { name: "publication_refused", reason: "not_json", topic: "talker/event/late" } as const;
      expect((await entry(pump.id, late)).detail).toMatch(/^\/ns is a number with more digits than a double/);
      await entry(pump.id, { name: "publication_refused", reason: "too_large", topic: "db/talker/large" });
    });

    test("show what is wrong with a shadow update, in the words of the validation", async () => {
      const pump = await enrolDevice(mesh, "garbler");
      await using device = await pump.connect();
      const topic = "garbler/shadow/update";
      const refused = { name: "publication_refused", topic } as const;
      for (const [payload, reason, detail] of [
        ["{", "shadow_invalid", "the payload is not JSON"],
        ["{}", "shadow_invalid", "state is missing or not an object"],
        ['{"state":{"reported":{"online":true}}}', "shadow_invalid", "online"],
        ['{"state":{},"version":"1"}', "shadow_invalid", "/shadow/version"],
        ['{"state":{},"version":7}', "version_conflict", "the shadow's version is 0"],
      ] as const) {
        await device.publish(topic, payload, 1);
        await eventually(async () =>
          (await historyOf(pump.id)).some(
            (one) => one.topic === topic && one.reason === reason && one.detail?.includes(detail),
          ),
        );
      }
      expect(await entry(pump.id, refused)).toMatchObject({ address: null });
    });

    test("of all devices are one list, which conditions and cards lead to", async () => {
      const labels = { shadow: { tags: { labels: ["troubled"] } } };
      const pump = await enrolDevice(mesh, "troubled-1");
      await enrolDevice(mesh, "troubled-2");
      for (const id of ["troubled-1", "troubled-2"]) await master.post(`devices/${id}`, labels);
      await using device = await pump.connect();
      await device.publish("troubled-1/event/broken", "{", 1);
      await expect(login("troubled-2", "wrong")).rejects.toThrow();
      await entry("troubled-1", { reason: "not_json" });
      await entry("troubled-2", { reason: "wrong_password" });
      const idsOf = async (path: string): Promise<string[]> =>
        (await master.get(path)).json.map(({ id }: { readonly id: string }) => id);
      expect((await idsOf("diagnostics?where=label:troubled")).sort()).toEqual(["troubled-1", "troubled-2"]);
      expect(await idsOf("diagnostics?where=label:troubled&name=login_refused")).toEqual(["troubled-2"]);
      expect(await idsOf("diagnostics?where=label:troubled&name=connected&since=PT1H")).toEqual([
        "troubled-1",
      ]);
      const first = await master.get("diagnostics?where=label:troubled&limit=1");
      expect(first.json).toHaveLength(1);
      const next = /<\/api\/v2\/(.*)>/.exec(first.headers.get("link") ?? "")?.[1] ?? "";
      expect(await idsOf(next)).not.toEqual(first.json.map(({ id }: { readonly id: string }) => id));
      const { json: facets } = await master.get(
        "device_facets?where=label:troubled problem:any&facets=problem",
      );
      expect(facets).toMatchObject({
        total: 2,
        facets: {
          problem: [
            { value: "not_json", count: 1 },
            { value: "wrong_password", count: 1 },
          ],
        },
      });
      const listed = await master.get("devices?where=problem:wrong_password label:troubled&limit=5");
      expect(listed.json).toMatchObject([{ id: "troubled-2", problems: ["wrong_password"] }]);
      expect(listed.headers.get("total-count")).toBe("1");
      const ownPage = await master.get("devices/troubled-2");
      expect(ownPage.json).not.toHaveProperty("problems");
    });

    ofOwnBroker("show topics that the device may not use, as the broker's log names them", async () => {
      const pump = await enrolDevice(mesh, "astray");
      await using device = await pump.connect("astray:a");
      for (const topic of ["telemetry", "astray/telemetry", "db/other/x"])
        await device.publish(topic, "1", 1);
      const dropped = { name: "publication_refused", reason: "topic", client_id: "astray:a" } as const;
      // Each topic is an entry, with what is allowed instead.
      for (const topic of ["telemetry", "astray/telemetry"]) await entry(pump.id, { ...dropped, topic });
      expect(await entry(pump.id, { ...dropped, topic: "db/other/x", address: "127.0.0.1" })).toMatchObject({
        detail: expect.stringContaining("publish below `db/astray/`, such as `db/astray/temperature`"),
      });
      expect(await device.subscribe("other/#", 1)).toBe(128);
      await entry(pump.id, { name: "subscription_refused", reason: "topic", topic: "other/#" });
      expect(await device.subscribe("astray/rpc/#", 1)).toBe(128);
      await device.publish("telemetry", "1", 1);
      await entry(pump.id, { ...dropped, topic: "telemetry" });
      expect((await historyOf(pump.id)).map(({ topic }) => topic)).not.toContain("astray/rpc/#");
    });

    test("show a session that can hold no further subscription at QoS 1", async () => {
      const pump = await enrolDevice(mesh, "eager");
      await using device = await pump.connect();
      for (let n = 0; n < 16; n++) expect(await device.subscribe(`eager/s${n}`, 1)).toBe(1);
      expect(await device.subscribe("eager/one-more", 1)).toBe(128);
      await entry(pump.id, { name: "subscription_limit", client_id: "eager" });
    });

    test("list logins of ids that are no device, until one is made, and hold no secret", async () => {
      const tried = async (id: string): Promise<UnknownDevice | undefined> =>
        (await master.get("unknown_devices")).json.find((one: UnknownDevice) => one.id === id);
      const secret = `dt_${"5".repeat(32)}`;
      for (const id of ["stranger", secret, "no/id"]) await expect(login(id, secret)).rejects.toThrow();
      await expect(login("stranger", secret)).rejects.toThrow();
      const stranger = await eventually(async () => {
        const found = await tried("stranger");
        return found?.count === 2 ? found : null;
      });
      expect(stranger).toMatchObject({
        reason: "unknown_device",
        address: "127.0.0.1",
        client_id: "stranger",
      });
      expect(await tried("dt_[redacted]")).toMatchObject({ reason: "unknown_device" });
      expect(await tried("no/id")).toMatchObject({ reason: "bad_user_name" });
      expect((await master.get("unknown_devices")).text).not.toContain("5".repeat(32));
      await enrolDevice(mesh, "stranger");
      expect(await tried("stranger")).toBeUndefined();
      expect(await historyOf("stranger")).toEqual([]);
    });

    test("are for master keys alone, and nothing of a device is shown to its successor", async () => {
      const pump: EnrolledDevice = await enrolDevice(mesh, "private");
      for (const path of ["devices/private/diagnostics", "unknown_devices"]) {
        expect((await pump.asDeviceKey.get(path)).status).toBe(403);
        expect((await pump.asPublicKey.get(path)).status).toBe(403);
      }
      await expect(login(pump.id, "wrong")).rejects.toThrow();
      await entry(pump.id, { reason: "wrong_password" });
      await master.delete("devices/private");
      expect((await master.get("devices/private/diagnostics")).status).toBe(404);
      await eventually(async () => (await master.post("devices", { id: "private" })).status === 201);
      expect(await historyOf("private")).toEqual([]);
    });
  });
}
