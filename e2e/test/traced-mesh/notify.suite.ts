import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Notification } from "@devmesh/contracts/model/notification";
import { eventually } from "@devmesh/testkit/eventually";
import type { TestMesh } from "@devmesh/testkit/mesh";
import { openEventStream, openWebSocket } from "@devmesh/testkit/notification-client";
import { type StartedReplica, startReplica } from "@devmesh/testkit/replica";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { asMaster, type EnrolledDevice, enrolDevice, registerCustomer } from "../../src/tenant.ts";

const notify = "/api/v2/notify";
const own = "/api/v2/m/device/notify";

/** Frames about one device, keys and customers left out. */
const about = (frames: readonly Notification[], id: string) => frames.filter((frame) => frame.id === id);
const namesOf = (frames: readonly Notification[]) => frames.map(({ name }) => name);

/** The notification stream, through two gateways. The mesh has no customer before. */
export function notificationStream(shared: () => TestMesh): void {
  describe("the notification stream", () => {
    let mesh: TestMesh;
    let other: StartedReplica;
    const heard: Notification[] = [];
    const enrolled: EnrolledDevice[] = [];
    const secrets: string[] = [];

    beforeAll(async () => {
      mesh = shared();
      other = await startReplica(mesh.dataDir, "gateway", mesh.storeUrl ? { STORE_URL: mesh.storeUrl } : {});
    }, 180_000);
    afterAll(async () => {
      await other?.end();
    }, 120_000);

    async function enrol(id: string, acl?: object) {
      const device = await enrolDevice(mesh, id, acl);
      enrolled.push(device);
      secrets.push(device.token, device.publicKey, device.deviceKey);
      return device;
    }

    test("sends through each gateway all that happens to a device, in its order", async () => {
      const websocket = await openWebSocket(mesh.url, `${notify}?data=1&account=1`, { key: mesh.masterKey });
      const events = await openEventStream(other.url, `${notify}?data=1&account=1`, { key: mesh.masterKey });
      const pump = await enrol("pump");
      const device = await pump.connect();
      await device.answerRpc(() => ({ result: 1 }));
      await eventually(() => namesOf(about(websocket.frames, "pump")).includes("online"));
      const call = await asMaster(mesh).post("devices/pump/rpc/Sys.GetInfo", { a: 1 });
      expect(call.status).toBe(200);
      await device.publish("pump/event/alarm", { level: 3 }, 1);
      await eventually(() => namesOf(about(websocket.frames, "pump")).includes("rpc.out.alarm"));
      await asMaster(mesh).post("devices/pump", { name: "The pump" });
      await device.publish("db/pump/temp", "21.5", 1);
      await eventually(() => namesOf(about(websocket.frames, "pump")).includes("data"));
      await device.leave();
      await eventually(() => namesOf(about(websocket.frames, "pump")).includes("offline"));
      const seen = (await asMaster(mesh).get("devices/pump")).json;
      expect((await asMaster(mesh).delete("devices/pump")).status).toBe(204);
      await eventually(() => namesOf(about(websocket.frames, "pump")).includes("deleted"));

      const frames = about(websocket.frames, "pump");
      expect(namesOf(frames).filter((name) => name !== "data")).toEqual([
        "created",
        "online",
        "rpc.in.Sys.GetInfo",
        "rpc.out.alarm",
        "updated",
        "offline",
        "deleted",
      ]);
      const of = (name: string) => frames.find((frame) => frame.name === name)?.data;
      expect(of("rpc.in.Sys.GetInfo")).toEqual({ a: 1 });
      expect(of("rpc.out.alarm")).toEqual({ level: 3 });
      expect(of("updated")).toMatchObject({ id: "pump", name: "The pump", acl: seen.acl });
      expect(of("data")).toMatchObject({ device_id: "pump", topic: "db/pump/temp", message: "21.5" });
      const stored = websocket.frames.filter(({ name }) => name !== "data");
      await eventually(() => events.frames.length >= websocket.frames.length);
      expect(events.frames.filter(({ name }) => name !== "data")).toEqual(stored);
      expect(stored.map(({ seq }) => seq)).toEqual(
        [...new Set(stored.map(({ seq }) => seq))].sort((one, two) => one - two),
      );
      // Its key came and went with it.
      const changes = websocket.frames.filter(({ name }) => name === "keys").map(({ data }) => data);
      expect(changes).toEqual([{ change: "created" }, { change: "deleted" }]);
      heard.push(...websocket.frames, ...events.frames);
      for (const client of [websocket, events]) client.leave();
    });

    test("sends frames of customers only where the account is asked for", async () => {
      const account = await openWebSocket(mesh.url, `${notify}?account=1`, { key: mesh.masterKey });
      const plain = await openWebSocket(mesh.url, notify, { key: mesh.masterKey });
      const { asCustomer, token } = await registerCustomer(mesh, "ann@example.com");
      secrets.push(token);
      await asCustomer.post("customer", { meta: { n: 1 } });
      const [listed] = (await asMaster(mesh).get("customers")).json;
      await asMaster(mesh).delete(`customers/${listed.id}`);
      await eventually(() => account.frames.some(({ data }) => JSON.stringify(data).includes("deleted")));
      expect(
        about(account.frames, listed.id).map(({ name, data }) => [name, (data as { change: string }).change]),
      ).toEqual([
        ["customers", "invited"],
        ["customers", "confirmed"],
        ["customers", "updated"],
        ["customers", "deleted"],
      ]);
      await enrol("bystander");
      await eventually(() => plain.frames.length > 0);
      expect(namesOf(plain.frames)).toEqual(["created"]);
      heard.push(...account.frames, ...plain.frames);
      for (const client of [account, plain]) client.leave();
    });

    test("sends frames of one device alone where it is asked for, also when there is none of that id yet", async () => {
      const path = `${notify}?device=boiler&data=1`;
      const client = await openEventStream(other.url, path, { key: mesh.masterKey });
      const all = await openWebSocket(mesh.url, `${notify}?data=1`, { key: mesh.masterKey });
      const [boiler, siren] = [await enrol("boiler"), await enrol("siren")];
      await using ofSiren = await siren.connect();
      await using ofBoiler = await boiler.connect();
      await ofSiren.publish("db/siren/volume", "45", 1);
      await ofBoiler.publish("db/boiler/bar", "0.5", 1);
      await eventually(() => namesOf(all.frames).filter((name) => name === "data").length === 2);
      await eventually(() => namesOf(client.frames).includes("data"));
      expect(namesOf(client.frames)).toEqual(["created", "online", "data"]);
      expect(client.frames.every(({ id }) => id === "boiler")).toBe(true);
      heard.push(...client.frames, ...all.frames);
      for (const each of [client, all]) each.leave();
    });

    test("goes on at another gateway after the last frame, with none missing and none twice under load", async () => {
      const lamp = await enrol("lamp");
      await using device = await lamp.connect();
      const expected = Array.from({ length: 400 }, (_, n) => n);
      const numbers = (frames: readonly Notification[]) =>
        frames.filter(({ name }) => name === "rpc.out.n").map(({ data }) => data);
      let at = mesh.url;
      let after: number | undefined;
      const all: Notification[] = [];
      let reading = true;
      const begun = Promise.withResolvers<void>();
      const reader = (async () => {
        while (reading) {
          const path = after === undefined ? notify : `${notify}?after=${after}`;
          const client = await openWebSocket(at, path, { key: mesh.masterKey });
          begun.resolve();
          await eventually(() => client.frames.length >= 37 || !reading);
          client.leave();
          const frames = [...client.frames];
          all.push(...frames);
          after = frames.at(-1)?.seq ?? after;
          at = at === mesh.url ? other.url : mesh.url;
        }
      })();
      await Promise.race([begun.promise, reader]);
      for (const n of expected) await device.publish("lamp/event/n", n, 1);
      await eventually(() => numbers(all).length >= expected.length - 37);
      reading = false;
      await reader;
      const rest = await openWebSocket(at, `${notify}?after=${after}`, { key: mesh.masterKey });
      await eventually(() => numbers([...all, ...rest.frames]).length >= expected.length);
      rest.leave();
      expect(numbers([...all, ...rest.frames])).toEqual(expected);
      expect(namesOf(all)).not.toContain("gap");
      heard.push(...all);
    });

    test("closes when its key is revoked, whichever gateway it was revoked through", async () => {
      const created = await asMaster(mesh).post("keys", {});
      secrets.push(created.json.key);
      const websocket = await openWebSocket(other.url, notify, { key: created.json.key });
      const events = await openEventStream(other.url, notify, { key: created.json.key });
      await asMaster(mesh).delete(`keys/${created.json.id}`);
      expect(await websocket.ended).toEqual([1008, "the key has ended"]);
      expect(await events.ended).toEqual(["end", "the key has ended"]);
    });

    test("of a public key shows of its device what the ACL covers, and nothing of others", async () => {
      const acl = {
        read: ["/state/reported/app"],
        write: [],
        rpc: ["Allowed"],
        queries: { temperatures: { topic: "temp/#" } },
      };
      const tank = await enrol("tank", acl);
      const seer = await enrol("seer", { ...acl, read: ["/state/reported"] });
      const neighbour = await enrol("neighbour");
      const [tankStream, seerStream] = await Promise.all(
        [tank, seer].map((device) => openWebSocket(other.url, `${own}?data=1`, { key: device.publicKey })),
      );
      if (tankStream === undefined || seerStream === undefined) throw new Error("no streams");
      for (const device of [tank, neighbour, seer]) {
        await using connection = await device.connect();
        await connection.answerRpc(() => ({ result: null }));
        await eventually(async () => (await asMaster(mesh).get(`devices/${device.id}`)).json.online === true);
        for (const func of ["Allowed", "Secret"])
          expect((await asMaster(mesh).post(`devices/${device.id}/rpc/${func}`, {})).status).toBe(200);
        await connection.publish(`${device.id}/event/private`, { hidden: true }, 1);
        for (const topic of ["temp", "temp/inside", "humidity"])
          await connection.publish(`db/${device.id}/${topic}`, `of ${device.id}`, 1);
        const reported = { app: { level: 7 }, hidden: { secret: 1 } };
        await connection.publish(`${device.id}/shadow/update`, { state: { reported } }, 1);
        await asMaster(mesh).post(`devices/${device.id}`, {
          name: "named",
          shadow: { tags: { labels: ["x"] } },
        });
      }
      await eventually(() => namesOf(seerStream.frames).includes("offline"));
      for (const device of [tank, seer])
        expect((await asMaster(mesh).delete(`devices/${device.id}`)).status).toBe(204);
      expect((await tankStream.ended)[0]).toBe(1008);
      expect((await seerStream.ended)[0]).toBe(1008);

      const topics = (frames: readonly Notification[]) =>
        frames.filter(({ name }) => name === "data").map(({ data }) => (data as { topic: string }).topic);
      expect(new Set(namesOf(tankStream.frames))).toEqual(
        new Set([
          "rpc.in.Allowed",
          "data",
          "updated",
          ...namesOf(tankStream.frames).filter((name) => name === "deleted"),
        ]),
      );
      expect(namesOf(seerStream.frames)).toEqual(expect.arrayContaining(["online", "offline"]));
      expect(topics(tankStream.frames)).toEqual(["db/tank/temp", "db/tank/temp/inside"]);
      const updates = tankStream.frames.filter(({ name }) => name === "updated").map(({ data }) => data);
      expect(updates.at(-1)).toEqual({
        id: "tank",
        shadow: { state: { reported: { app: { level: 7 } } } },
      });
      for (const [stream, id] of [
        [tankStream, "tank"],
        [seerStream, "seer"],
      ] as const) {
        expect(new Set(stream.frames.map((frame) => frame.id))).toEqual(new Set([id]));
        const text = JSON.stringify(stream.frames);
        for (const leak of ["Secret", "private", "humidity", "neighbour", "labels"])
          expect(text).not.toContain(leak);
      }
      expect(JSON.stringify(tankStream.frames)).not.toMatch(/hidden|online|offline/);
      heard.push(...tankStream.frames, ...seerStream.frames);
    });

    test("of a public key closes when the key is rotated", async () => {
      const valve = await enrol("valve");
      const stream = await openEventStream(mesh.url, own, { key: valve.publicKey });
      await asMaster(mesh).post("devices/valve/public_key");
      expect(await stream.ended).toEqual(["end", "the key has ended"]);
    });

    test("says when a gateway stops, and goes on where it was at the next one", async () => {
      const client = await openWebSocket(other.url, notify, { key: mesh.masterKey });
      await enrol("before");
      await client.heard(1);
      await other.end();
      expect(await client.ended).toEqual([1012, "the gateway stops"]);
      await enrol("meanwhile");
      const again = await openWebSocket(mesh.url, `${notify}?after=${client.frames.at(-1)?.seq}`, {
        key: mesh.masterKey,
      });
      await again.heard(1);
      expect(again.frames.map(({ name, id }) => [name, id])).toEqual([["created", "meanwhile"]]);
      again.leave();
    });

    test("never holds a secret, nor does a log", async () => {
      const told = JSON.stringify(heard);
      expect(heard.length).toBeGreaterThan(400);
      for (const secret of secrets) expect(told).not.toContain(secret);
      const folder = join(mesh.dataDir, "logs");
      const logs = await Promise.all(
        (await readdir(folder)).map((file) => readFile(join(folder, file), "utf8")),
      );
      for (const secret of [...secrets, mesh.masterKey]) expect(logs.join("")).not.toContain(secret);
    });
  });
}
