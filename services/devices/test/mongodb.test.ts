import { openMongo } from "@devmesh/store/mongodb";
import { type MongoUrl, parseStoreUrl } from "@devmesh/store/store-url";
import { describeOverMongodb } from "@devmesh/testkit/describe-over-mongodb";
import type { TestDatabase } from "@devmesh/testkit/mongodb";
import { readQueryPlan } from "@devmesh/testkit/query-plan";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import type { PendingOperation } from "../src/pending-operation.ts";
import { deviceCollection, deviceQueries, openMongoDeviceStore } from "../src/store/device-store.mongodb.ts";
import type { DeviceStore } from "../src/store/device-store.ts";
import { describeConditions } from "./conditions.suite.ts";
import { describeDeviceStore, newDevice, walkDevices } from "./device-store.suite.ts";

const { signal } = new AbortController();

const heldBy = (token: string): PendingOperation => ({ kind: "rotating", token, claimed_until: 5 });
const urlOf = (database: TestDatabase) => parseStoreUrl(database.storeUrl) as MongoUrl;

describeOverMongodb("devices in MongoDB", (mongodb) => {
  const create = async () => {
    const database = mongodb().newDatabase();
    return {
      open: () => openMongoDeviceStore(urlOf(database), signal),
      async remove() {
        await database[Symbol.asyncDispose]();
      },
    };
  };
  describeDeviceStore("MongoDB", create);
  describeConditions("MongoDB", create);

  let database: TestDatabase;
  const open: DeviceStore[] = [];
  const openStore = async () => {
    const store = await openMongoDeviceStore(urlOf(database), signal);
    open.push(store);
    return store;
  };

  beforeEach(() => {
    database = mongodb().newDatabase();
  });
  afterEach(async () => {
    for (const store of open.splice(0)) await store.close();
    await database[Symbol.asyncDispose]();
  });

  test("every query finds its documents by an index", async () => {
    const { db, close } = await openMongo(urlOf(database), [deviceCollection], signal);
    const devices = db.collection(deviceCollection.name);
    await devices.insertMany(
      Array.from({ length: 2_000 }, (_, at) => ({ position: at, hidden: false, online: at % 100 === 0 })),
    );
    const queries = {
      _id_: [deviceQueries.visible("a"), deviceQueries.visibleAmong(["a", "b"])],
      one_of_position: [
        deviceQueries.after(1_000),
        deviceQueries.before(1_000),
        deviceQueries.between(1_000, 1_100),
        { ...deviceQueries.between(1_000, 1_100), ...deviceQueries.meeting({ words: ["x"] }) },
      ],
      by_version: [deviceQueries.inRange("firmware", { value: "9", after: 5 }, false)],
      told_online: [deviceQueries.online()],
      marked: [deviceQueries.marked()],
    };
    for (const [index, ofIndex] of Object.entries(queries)) {
      for (const query of ofIndex) {
        const plan = readQueryPlan(await devices.find(query as object).explain());
        expect([query, plan.indexes, plan.scansCollection]).toEqual([query, [index], false]);
      }
    }
    await close();
  });

  test("a list of 50,000 devices is walked page by page without missing or repeating one", async () => {
    const { db, close } = await openMongo(urlOf(database), [], signal);
    const ids = Array.from({ length: 50_000 }, (_, at) => `device-${at}`);
    const rows = ids.map((id, at) => ({
      _id: id as never,
      // Half of all positions belong to deleted devices.
      position: 2 * at + 1,
      labels: [`l${id}`],
      hidden: false,
    }));
    for (let from = 0; from < rows.length; from += 10_000) {
      await db.collection(deviceCollection.name).insertMany(rows.slice(from, from + 10_000));
    }
    await db.collection("counters").insertOne({ _id: "device_position" as never, last: 100_000 });
    await close();
    const store = await openStore();
    expect(await walkDevices(store)).toEqual(ids);
    expect(await walkDevices(store, true)).toEqual(ids.toReversed());
    const found = await store.list({ condition: { words: ["ldevice-49999"] }, limit: 10 }, signal);
    expect(found?.map(({ id }) => id)).toEqual(["device-49999"]);
  });

  test("values beyond those that are read one by one are counted, too", async () => {
    const { db, close } = await openMongo(urlOf(database), [], signal);
    const rows = Array.from({ length: 10_100 }, (_, at) => ({
      _id: `device-${at}` as never,
      position: at + 1,
      labels: [`l${at}`, "all"],
      firmware: `v${at}`,
      hidden: false,
    }));
    await db.collection(deviceCollection.name).insertMany(rows);
    await close();
    const store = await openStore();
    const labels = await store.countBy("label", {}, signal);
    expect([labels.values[0], labels.values.length]).toEqual([{ value: "all", count: 10_100 }, 100]);
    expect(labels.others).toBe(10_100 - 99);
    expect((await store.countBy("version", {}, signal)).others).toBe(10_100 - 100);
    expect((await store.countBy("version", { labels: ["l7"] }, signal)).others).toBe(0);
  });

  test("of insertions of one id by two replicas one succeeds, and positions are unique and ascending", async () => {
    const replicas = [await openStore(), await openStore()];
    for (let round = 0; round < 10; round++) {
      const outcomes = await Promise.all(
        Array.from({ length: 10 }, (_, at) =>
          replicas[at % 2]?.insert(newDevice(`device-${round}-${at % 3}`), null, signal),
        ),
      );
      expect(outcomes.filter((outcome) => outcome === "inserted")).toHaveLength(3);
    }
    const listed = (await replicas[0]?.list({ limit: 100 }, signal)) ?? [];
    const places = listed.map(({ cursor }) => Number(cursor));
    expect(places).toHaveLength(30);
    expect(places).toEqual([...new Set(places)].sort((a, b) => a - b));
  });

  test("positions continue after the devices when their counter was lost", async () => {
    const store = await openStore();
    for (const id of ["a", "b"]) await store.insert(newDevice(id), null, signal);
    const { db, close } = await openMongo(urlOf(database), [], signal);
    await db.collection("counters").deleteMany({});
    await close();
    expect(await store.list({ limit: 9 }, signal)).toHaveLength(2);
    expect(await store.insert(newDevice("c"), null, signal)).toBe("inserted");
    expect((await store.list({ limit: 9 }, signal))?.map(({ id }) => id)).toEqual(["a", "b", "c"]);
  });

  test("a hundred replacements by two replicas step the revision a hundred times and lose none", async () => {
    const replicas = [await openStore(), await openStore()];
    await replicas[0]?.insert(newDevice("a"), null, signal);
    async function add(store: DeviceStore | undefined, member: string) {
      for (;;) {
        const device = await store?.find("a", signal);
        if (!store || !device) throw new Error("no device");
        const { shadow, revision } = device;
        const desired = { ...shadow.desired, [member]: 1 };
        const changed = { ...device, shadow: { ...shadow, desired, version: shadow.version + 1 } };
        if (await store.replace(changed, revision, signal)) return;
      }
    }
    const lines = replicas.map(async (store, replica) => {
      for (let at = 0; at < 50; at++) await add(store, `m${replica}-${at}`);
    });
    await Promise.all(lines);
    const device = await replicas[1]?.find("a", signal);
    expect([device?.revision, device?.shadow.version]).toEqual([101, 100]);
    expect(Object.keys(device?.shadow.desired ?? {})).toHaveLength(100);
  });

  test("an operation that two replicas want to take over goes to one of them", async () => {
    const replicas = [await openStore(), await openStore()];
    for (let round = 0; round < 20; round++) {
      const id = `device-${round}`;
      await replicas[0]?.insert(newDevice(id), heldBy("left"), signal);
      const taken = await Promise.all(
        replicas.map((store, at) => store.replaceOperation(id, "left", heldBy(`by-${at}`), signal)),
      );
      expect(taken.filter(Boolean)).toHaveLength(1);
      const removed = await Promise.all(replicas.map((store, at) => store.remove(id, `by-${at}`, signal)));
      expect(removed).toEqual(taken);
    }
  });

  test("members come back whatever they are named, in ACL and shadow", async () => {
    const store = await openStore();
    const odd = JSON.parse('{"$set":{"a.b":1},"a.$":2,"":3,"10":4,"2":5,"_id":6,"ключ":7,"x":{"$oid":"no"}}');
    const device = newDevice("odd", { tags: { ...odd, labels: ["$x", "a.b"] } });
    const acl = { ...device.acl, queries: { "a.b$": { topic: "t/#" } } };
    const shadow = { ...device.shadow, desired: odd, metadata: { desired: odd, reported: odd } };
    await store.insert({ ...device, acl, shadow }, null, signal);
    const found = await store.find("odd", signal);
    expect(JSON.stringify([found?.acl, found?.shadow])).toBe(JSON.stringify([acl, shadow]));
  });
});
