import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { inspect } from "node:util";
import { describeOverMongodb } from "@devmesh/testkit/describe-over-mongodb";
import { eventually } from "@devmesh/testkit/eventually";
import type { TestDatabase } from "@devmesh/testkit/mongodb";
import { startTcpProxy, type TcpProxy } from "@devmesh/testkit/tcp-proxy";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { MongoBulkWriteError, MongoServerError } from "mongodb";
import { isDuplicateKey, type MongoStore, openMongo } from "../src/mongodb.ts";
import { StoreUnavailable } from "../src/store-unavailable.ts";
import { type MongoUrl, parseStoreUrl } from "../src/store-url.ts";

const never = new AbortController().signal;
const things = [{ name: "things", indexes: [{ name: "by_size", key: { size: 1 }, unique: true }] }];

interface Thing {
  readonly _id: string;
  readonly size: number;
}

describeOverMongodb("a MongoDB store", (mongodb) => {
  let database: TestDatabase;
  let proxy: TcpProxy;
  let url: MongoUrl;
  const opened: MongoStore[] = [];

  async function open(collections = things): Promise<MongoStore> {
    const store = await openMongo(url, collections, never);
    opened.push(store);
    return store;
  }

  beforeEach(async () => {
    database = mongodb().newDatabase();
    proxy = await startTcpProxy(mongodb().port);
    const direct = database.storeUrlBehind(proxy.port);
    url = parseStoreUrl(direct) as MongoUrl;
  });
  afterEach(async () => {
    for (const store of opened.splice(0)) await store.close();
    await proxy.close();
    await database[Symbol.asyncDispose]();
  });

  test("has its indexes from the start, and opening it again changes nothing", async () => {
    await open();
    const { db } = await open();
    expect((await db.collection("things").indexes()).map(({ name }) => name)).toEqual(["_id_", "by_size"]);
  });

  test("tells a write that a unique index refused from other errors, by the index", async () => {
    const { db, run } = await open();
    const collection = db.collection<Thing>("things");
    await collection.insertOne({ _id: "a", size: 1 });
    const refused = await run(never, () => collection.insertOne({ _id: "b", size: 1 })).catch(
      (error) => error,
    );
    expect(isDuplicateKey(refused)).toBe(true);
    expect(isDuplicateKey(refused, "by_size")).toBe(true);
    expect(isDuplicateKey(refused, "_id_")).toBe(false);
    expect(isDuplicateKey(new Error("11000"))).toBe(false);
  });

  test("takes a batch for refused by a unique index only when nothing else was in its way", async () => {
    const { db, run } = await open();
    const collection = db.collection<Thing>("things");
    await collection.insertOne({ _id: "a", size: 1 });
    const batch = [
      { _id: "a", size: 2 },
      { _id: "b", size: 1 },
      { _id: "c", size: 3 },
    ];
    const refused = await run(never, () => collection.insertMany(batch, { ordered: false })).catch(
      (error) => error,
    );
    expect(isDuplicateKey(refused)).toBe(true);
    expect(isDuplicateKey(refused, "by_size")).toBe(false);
    refused.writeErrors[1].err.code = 121;
    expect(isDuplicateKey(refused)).toBe(false);
  });

  test("is unavailable while its server is away, and works again once it is back, without being opened anew", async () => {
    const store = await open();
    proxy.cut();
    await expect(store.ping(never)).rejects.toThrow(StoreUnavailable);
    await expect(
      store.run(never, () => store.db.collection<Thing>("things").insertOne({ _id: "a", size: 1 })),
    ).rejects.toThrow(StoreUnavailable);
    proxy.restore();
    await store.ping(never);
    await store.run(never, () => store.db.collection<Thing>("things").insertOne({ _id: "a", size: 1 }));
    expect(await store.db.collection<Thing>("things").countDocuments()).toBe(1);
  });

  test("finds its server again after all connections ended in one turn of the event loop", async () => {
    const sockets = new Set<Socket>();
    const collect = (message: unknown) => sockets.add((message as { socket: Socket }).socket);
    subscribe("net.client.socket", collect);
    const store = await open();
    const find = () => store.run(never, () => store.db.collection<Thing>("things").findOne({ _id: "a" }));
    await find();
    unsubscribe("net.client.socket", collect);
    // A check of the server that is wanted within half a second of another waits for that to pass.
    await sleep(600);
    proxy.stall();
    const cutShort = find();
    await sleep(50);
    // The first of them is the one that the driver watches the server by.
    for (const socket of sockets) socket.destroy();
    proxy.restore();
    // A driver that found the server would have tried again and been answered: this one waits for a lost heartbeat.
    await expect(cutShort).rejects.toThrow(StoreUnavailable);
    await eventually(() => store.ping(never).then(() => true));
    expect(await find()).toBeNull();
  });

  test("ends a call at its deadline although the server says nothing", async () => {
    const store = await open();
    await store.ping(never);
    proxy.stall();
    const late = new Error("too late");
    const deadline = new AbortController();
    const waiting = store.run(deadline.signal, () =>
      store.db.collection<Thing>("things").updateOne({ _id: "a" }, { $set: { size: 1 } }),
    );
    deadline.abort(late);
    await expect(waiting).rejects.toBe(late);
    await expect(store.run(deadline.signal, async () => 1)).rejects.toBe(late);
  });

  test("passes on an error that is not the server's being away", async () => {
    const { db, run } = await open();
    await expect(
      run(never, () => db.collection("things").updateOne({}, { $nonsense: { a: 1 } })),
    ).rejects.not.toThrow(StoreUnavailable);
  });

  test.each([
    ["stepped down", { code: 11_602, codeName: "InterruptedDueToReplStateChange" }],
    ["ended the command", { code: 11_601, codeName: "Interrupted" }],
    ["lost the cursor in a restart", { code: 43, codeName: "CursorNotFound" }],
    ["has no room left", { code: 14_031, codeName: "OutOfDiskSpace" }],
    ["knows another password now", { code: 18, codeName: "AuthenticationFailed" }],
    ["is over its limits", { code: 433, codeName: "AdmissionQueueOverflow" }],
  ])("is unavailable when the server %s", async (_, answer) => {
    const { run } = await open();
    const refusal = new MongoServerError({ message: "no", ...answer });
    const failed = await run(never, () => Promise.reject(refusal)).catch((error) => error);
    expect(failed).toBeInstanceOf(StoreUnavailable);
    expect(failed.message).toContain(answer.codeName);
    expect(failed.cause).toBe(refusal);
  });

  test("tries again what the server rolled back for others to go on, within bounds", async () => {
    const { run } = await open();
    const deadlock = new MongoServerError({ message: "deadlock detected", code: 16_908_292 });
    let calls = 0;
    const twice = () => (calls++ < 2 ? Promise.reject(deadlock) : Promise.resolve("done"));
    expect(await run(never, twice)).toBe("done");
    expect(calls).toBe(3);
    const failed = await run(never, () => Promise.reject(deadlock)).catch((error) => error);
    expect(failed).toBeInstanceOf(StoreUnavailable);
    expect(failed.cause).toBe(deadlock);
    const deadline = new AbortController();
    calls = 0;
    const late = () => {
      calls++;
      deadline.abort(new Error("late"));
      return Promise.reject(deadlock);
    };
    await expect(run(deadline.signal, late)).rejects.toThrow("late");
    expect(calls).toBe(1);
  });

  test("is unavailable when a majority may not have a batch, although the batch was refused, too", async () => {
    const { db, run } = await open();
    const collection = db.collection<Thing>("things");
    await collection.insertOne({ _id: "a", size: 1 });
    const refused = await collection
      .insertMany([{ _id: "a", size: 2 }], { ordered: false })
      .catch((error) => error);
    if (!(refused instanceof MongoBulkWriteError)) throw new Error("no such error");
    const unheard = Object.assign(Object.create(refused), {
      result: { getWriteConcernError: () => ({ code: 64, errmsg: "waiting for replication timed out" }) },
    });
    await expect(run(never, () => Promise.reject(unheard))).rejects.toThrow(StoreUnavailable);
  });

  test("waits for a server that is starting while it is opened", async () => {
    proxy.cut();
    const opening = open();
    // Longer than a call waits for a server.
    await sleep(2_000);
    proxy.restore();
    await (await opening).ping(never);
  });

  test("is unavailable when no server answers, with an error that holds neither user nor password", async () => {
    proxy.cut();
    const withPassword = url.url.replace("//", "//some-user:some-password@");
    const failed = await openMongo({ ...url, url: withPassword }, things, never).catch((error) => error);
    expect(failed).toBeInstanceOf(StoreUnavailable);
    expect(inspect(failed, { depth: 12, showHidden: true })).not.toMatch(/some-(user|password)/);
  });
});

test("no key of a document is taken for the name of a unique index", () => {
  const refusedBy = (index: string, key: string) =>
    new MongoServerError({
      code: 11_000,
      message: `E11000 duplicate key error collection: mesh.things index: ${index} dup key: { ${key} }`,
    });
  expect(isDuplicateKey(refusedBy("by_size", "size: 1"), "by_size")).toBe(true);
  expect(isDuplicateKey(refusedBy("_id_", '_id: "by_size"'), "by_size")).toBe(false);
  expect(isDuplicateKey(refusedBy("_id_", "_id: \" index: by_size Index 'by_size'\""), "by_size")).toBe(
    false,
  );
  expect(isDuplicateKey(refusedBy("by_size_and_name", "size: 1"), "by_size")).toBe(false);
});
