import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFile, cp, mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { repository } from "@devmesh/supervisor/mesh/service-process";
import { eventually } from "@devmesh/testkit/eventually";
import { startMesh, type TestMesh } from "@devmesh/testkit/mesh";
import { findMongodb, withoutMongodb } from "@devmesh/testkit/mongodb";
import { connectMqttDevice } from "@devmesh/testkit/mqtt-device";
import { type TempFolder, tempFolder } from "@devmesh/testkit/temp-folder";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { restClient } from "../src/rest-client.ts";
import { asMaster, type EnrolledDevice, enrolDevice, registerCustomer } from "../src/tenant.ts";
import { mongodbDump } from "./mongodb-dump.ts";

const mongodb = await findMongodb();
const dump = mongodb === null ? null : await mongodbDump(mongodb.url);
afterAll(async () => await mongodb?.[Symbol.asyncDispose]());

/** The steps of docs/operations/backup.md for one kind of store. */
interface Procedure {
  readonly store: "sqlite" | "mongodb";
  /** Copies the stores of a mesh that runs. */
  backUp(mesh: TestMesh, folder: string): Promise<void>;
  /** Loses the stores of a mesh that has stopped, beside its data folder. */
  destroy(mesh: TestMesh): Promise<void>;
  /** Puts stores back: that of `devices` from one backup, the others from another. */
  restore(mesh: TestMesh, from: { devices: string; others: string }): Promise<void>;
}

const overSqlite: Procedure = {
  store: "sqlite",
  async backUp({ dataDir }, folder) {
    const script = join(repository, "tools/launcher/run.mjs");
    const { stdout } = await promisify(execFile)(process.execPath, [script, "backup", folder], {
      env: { ...process.env, DATA_DIR: dataDir, STORE_URL: "" },
    });
    for (const store of ["devices.db", "keys.db", "data.db", "jobs.db"])
      expect(stdout).toMatch(new RegExp(`^wrote ${join(folder, store)}, [1-9][\\d,.]* [KM]B$`, "m"));
    expect(stdout).toContain(`not copied: ${join(dataDir, "installation.json")}`);
  },
  async destroy() {},
  async restore({ dataDir }, { devices, others }) {
    await copyFile(join(devices, "devices.db"), join(dataDir, "devices.db"));
    for (const store of ["keys.db", "data.db", "jobs.db"])
      await copyFile(join(others, store), join(dataDir, store));
  },
};

const databasesOf = ({ storeUrl = "" }: TestMesh) => {
  const name = new URL(storeUrl).pathname.slice(1);
  return {
    all: `${name}_`,
    devices: `${name}_devices`,
    keys: `${name}_keys`,
    data: `${name}_data`,
    jobs: `${name}_jobs`,
  };
};

const overMongodb: Procedure = {
  store: "mongodb",
  async backUp(mesh, folder) {
    const { devices, keys, data, jobs } = databasesOf(mesh);
    await dump?.dump({ database: devices }, folder);
    await dump?.dump({ database: jobs }, folder);
    await dump?.dump({ database: keys }, folder);
    await dump?.dump({ database: data, only: "roll_up" }, folder);
    await dump?.dump({ database: data, except: ["roll_up", "state"] }, folder);
    await dump?.dump({ database: data, only: "state" }, folder);
  },
  async destroy(mesh) {
    await mongodb?.dropDatabases(databasesOf(mesh).all);
  },
  async restore(mesh, from) {
    const { devices, keys, data, jobs } = databasesOf(mesh);
    await using folder = await tempFolder();
    await cp(join(from.devices, devices), join(folder.path, devices), { recursive: true });
    for (const name of [keys, data, jobs]) {
      await cp(join(from.others, name), join(folder.path, name), { recursive: true });
    }
    await dump?.restore(folder.path);
  },
};

function backupSuite(name: string, procedure: Procedure, isPossible: boolean): void {
  (isPossible ? describe : describe.skip)(name, () => {
    let folder: TempFolder;
    let mesh: TestMesh | undefined;
    const meshes: TestMesh[] = [];
    beforeAll(async () => {
      folder = await tempFolder();
    });
    afterAll(async () => {
      for (const each of meshes) await each.stop();
      const [first] = meshes.splice(0);
      if (first) await procedure.destroy(first);
      await folder.remove();
    }, 120_000);

    const start = async () => {
      mesh = await startMesh({
        store: procedure.store,
        broker: "own",
        dataDir: join(folder.path, "data"),
      });
      meshes.push(mesh);
      return mesh;
    };

    /** Everything is lost but the backup and, kept apart from it, the installation's file. */
    async function loseAndRestore(lost: TestMesh, from: { devices: string; others: string }) {
      const kept = join(folder.path, "installation.json");
      await copyFile(join(lost.dataDir, "installation.json"), kept);
      await lost.stop();
      await rm(lost.dataDir, { recursive: true });
      await procedure.destroy(lost);

      await mkdir(lost.dataDir, { mode: 0o700 });
      await copyFile(kept, join(lost.dataDir, "installation.json"));
      await procedure.restore(lost, from);
      return await start();
    }

    const everythingOf = async (of: TestMesh) => {
      const read = async (path: string) => (await asMaster(of).get(path)).json;
      return {
        device: { ...(await read("devices/meter")), last_seen: null },
        credentials: await read("devices/meter/credentials"),
        keys: (await read("keys")).map((key: object) => ({ ...key, last_used: null })),
        records: await read("data?filter=db/meter/"),
        latest: await read("devices/meter/latest"),
        customers: await read("customers"),
        views: await read("views"),
        boards: await read("boards"),
        firmware: await read("firmware"),
        jobs: await read("jobs"),
      };
    };
    const isOnline = async (of: TestMesh) => (await asMaster(of).get("devices/meter")).json.online === true;

    test("a backup made while devices publish brings everything back into an empty folder", async () => {
      const first = await start();
      const meter = await enrolDevice(first, "meter");
      const busy = await enrolDevice(first, "busy");
      await asMaster(first).post("devices/meter", {
        name: "Meter",
        shadow: { state: { desired: { rate: 5 } }, tags: { site: "roof" } },
      });
      await asMaster(first).post("views", { name: "Roof", query: "where=tags%2Fsite%3Aroof" });
      const shown = { device_ids: ["meter"], topic: "kwh", pointer: "", fn: "last", range: "P1D" };
      const panel = { kind: "value", ...shown, x: 0, y: 0, w: 3, h: 2 };
      await asMaster(first).post("boards", { name: "Roof", panels: [panel] });
      const customer = await registerCustomer(first, "ann@example.com");
      const image = Buffer.from("version=2.0.0");
      const firmwareId = await uploadFirmware(first, image);
      // Of a device that never connects: it waits in the backup, too.
      await enrolDevice(first, "cellar");
      const action = { kind: "firmware", firmware_id: firmwareId, via: "push" };
      await asMaster(first).post("jobs", { target: { ids: ["cellar"] }, action });
      await eventually(async () => (await asMaster(first).get("jobs")).json[0]?.released === 1);
      // Stays, so that it is online in the backup and back at once after its restoration.
      const device = await meter.connect();
      for (const kwh of [17, 18, 19]) await device.publish("db/meter/kwh", String(kwh), 1);
      await eventually(
        async () => (await isOnline(first)) && (await everythingOf(first)).records.length === 3,
      );
      const before = await everythingOf(first);

      const backup = join(folder.path, "backup");
      const load = await publishUntilStopped(busy);
      await eventually(async () => (await countsOf(first)).length > 500);
      const storedBefore = (await countsOf(first)).length;
      await procedure.backUp(first, backup);
      const acknowledged = load.acknowledged();
      await eventually(() => load.acknowledged() > acknowledged);
      await load.stop();

      const second = await loseAndRestore(first, { devices: backup, others: backup });
      await using again = await connectMqttDevice({ url: second.mqttUrl, id: "meter", token: meter.token });
      await again.subscribe("meter/shadow/delta", 1);
      await eventually(() => isOnline(second));
      expect(second.masterKey).toBe(first.masterKey);
      expect(await everythingOf(second)).toEqual(before);
      const delta = await again.awaitMessage("meter/shadow/delta");
      expect(JSON.parse(delta.payload).state).toEqual({ rate: 5 });
      const content = `${second.url}/api/v2/firmware/${firmwareId}/content`;
      const authorized = { headers: { Authorization: `Bearer ${second.masterKey}` } };
      expect(await (await fetch(content, authorized)).text()).toBe(image.toString());
      const holders = {
        [meter.deviceKey]: "device",
        [meter.publicKey]: "m/device",
        [customer.token]: "customer",
      };
      for (const [key, path] of Object.entries(holders)) {
        expect((await restClient(second.url, key).get(path)).status).toBe(200);
      }
      // A cut of the stream of records: all up to a moment of the backup, none missing.
      const counts = await countsOf(second);
      expect(counts.length).toBeGreaterThanOrEqual(storedBefore);
      expect(counts).toEqual(counts.map((_, number) => number));
      // In the buckets each number is once, also of records that were stored after the backup copied those.
      const { count, sum } = await totalsOf(second);
      expect(count).toBeGreaterThanOrEqual(counts.length);
      expect(sum).toBe((count * (count - 1)) / 2);
      await again.publish("db/meter/kwh", "20", 1);
      const newest = async () => (await asMaster(second).get("data?skip=-1")).json[0]?.message;
      await eventually(async () => (await newest()) === "20");
    }, 180_000);

    test("a device made between the copies is made again with the same credentials, and one deleted there is deleted again", async () => {
      const first = mesh ?? (await start());
      const gone = await enrolDevice(first, "gone");
      const [earlier, later] = [join(folder.path, "earlier"), join(folder.path, "later")];
      await procedure.backUp(first, earlier);
      await asMaster(first).delete("devices/gone");
      // Its id is free again once the clean-up is through.
      await eventually(async () => (await asMaster(first).get("devices/gone")).status === 404);
      const late = await enrolDevice(first, "late");
      const device = await late.connect();
      await device.publish("db/late/kwh", "1", 1);
      await device.leave();
      await eventually(async () => (await asMaster(first).get("data?filter=db/late/")).json.length === 1);
      await procedure.backUp(first, later);

      const second = await loseAndRestore(first, { devices: earlier, others: later });
      const master = asMaster(second);
      expect((await master.get("devices/late")).status).toBe(404);
      const made = await master.post("devices", { id: "late" });
      expect([made.status, made.json.token, made.json.public_key]).toEqual([201, late.token, late.publicKey]);
      expect((await restClient(second.url, late.deviceKey).get("data")).json.length).toBe(1);

      expect((await master.get("devices/gone")).status).toBe(200);
      const login = { url: second.mqttUrl, id: "gone", token: gone.token };
      await expect(connectMqttDevice(login)).rejects.toThrow();
      expect((await master.delete("devices/gone")).status).toBe(204);
      await eventually(async () => (await master.post("devices", { id: "gone" })).status === 201, {
        everyMs: 500,
      });
    }, 180_000);
  });
}

/** Uploads firmware, and returns its id. */
async function uploadFirmware(mesh: TestMesh, image: Buffer): Promise<string> {
  const sha256 = createHash("sha256").update(image).digest("hex");
  const master = asMaster(mesh);
  const { json } = await master.post("firmware", { name: "pump", version: "2", size: image.length, sha256 });
  expect((await master.post(`firmware/${json.id}/content`, image)).json).toMatchObject({ ready: true });
  return json.id;
}

/** The numbers that the device `busy` published, in the order of storing. */
async function countsOf(mesh: TestMesh): Promise<number[]> {
  const { text } = await asMaster(mesh).get("data?filter=db/busy/", {
    headers: { accept: "application/x-ndjson" },
  });
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => Number(JSON.parse(line).message));
}

/** What the hours of the numbers of `busy` add up to. */
async function totalsOf(mesh: TestMesh) {
  const query = "device_id=busy&topic=count&pointer=&from=P1D&every=PT1H&fn=count,sum";
  const { json } = await asMaster(mesh).get(`series?${query}`);
  const points: [string, number, number][] = json.series[0].points;
  return {
    count: points.reduce((all, [, count]) => all + count, 0),
    sum: points.reduce((all, [, , sum]) => all + sum, 0),
  };
}

/** Publishes `0`, `1`, … at QoS 1, 20 at a time, and less than the 2,000 a second that a device may publish. */
async function publishUntilStopped(busy: EnrolledDevice) {
  const device = await busy.connect();
  let running = true;
  let next = 0;
  let acknowledged = 0;
  const publishing = (async () => {
    while (running) {
      await Promise.all(Array.from({ length: 20 }, () => device.publish("db/busy/count", String(next++), 1)));
      acknowledged = next;
      await sleep(20);
    }
  })();
  return {
    acknowledged: () => acknowledged,
    async stop() {
      running = false;
      await publishing;
      await device.leave();
    },
  };
}

backupSuite("back up and restore over SQLite, by npm run backup", overSqlite, true);
backupSuite(
  `back up and restore over MongoDB, by ${dump?.by ?? `nothing: ${withoutMongodb}`}`,
  overMongodb,
  dump !== null,
);
