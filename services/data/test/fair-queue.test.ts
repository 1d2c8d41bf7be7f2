import { setImmediate as nextTurn } from "node:timers/promises";
import { StoreUnavailable } from "@devmesh/store/store-unavailable";
import { parseStoreUrl } from "@devmesh/store/store-url";
import { describeOverMongodb } from "@devmesh/testkit/describe-over-mongodb";
import { eventually } from "@devmesh/testkit/eventually";
import { describe, expect, test } from "@jest/globals";
import { openMongoDataStore } from "../src/store/data-store.mongodb.ts";
import type { DataMessage, DataStore } from "../src/store/data-store.ts";
import { createFairQueue } from "../src/store/fair-queue.ts";
import { startCommandGate } from "./command-gate.ts";
import { tempStore } from "./temp-store.ts";

const { signal } = new AbortController();

/** Work that ends on request and records by name when it begins. */
function work(begun: string[]) {
  const ends: (() => void)[] = [];
  return {
    named: (name: string) => () =>
      new Promise<void>((resolve) => {
        begun.push(name);
        ends.push(resolve);
      }),
    async endFirst() {
      ends.shift()?.();
      await nextTurn();
    },
  };
}

describe("a fair queue", () => {
  test("a caller with much to do has its share of permits, and another one begins at once", async () => {
    const queue = createFairQueue({ limit: 3, perCaller: 2 });
    const begun: string[] = [];
    const { named } = work(begun);
    for (let at = 0; at < 50; at++) void queue.run("greedy", signal, named("greedy"));
    expect(begun).toEqual(["greedy", "greedy"]);
    void queue.run("other", signal, named("other"));
    expect(begun).toEqual(["greedy", "greedy", "other"]);
  });

  test("callers that wait get free permits by turns, however much each has queued", async () => {
    const queue = createFairQueue({ limit: 1, perCaller: 1 });
    const begun: string[] = [];
    const { named, endFirst } = work(begun);
    for (let at = 0; at < 50; at++) void queue.run("greedy", signal, named("greedy"));
    for (const name of ["a", "b", "a", "b"]) void queue.run(name, signal, named(name));
    for (let at = 0; at < 7; at++) await endFirst();
    expect(begun).toEqual(["greedy", "a", "b", "greedy", "a", "b", "greedy", "greedy"]);
  });

  test("a caller that goes away keeps its permit until what it began is done, and what it queued never begins", async () => {
    const queue = createFairQueue({ limit: 1, perCaller: 1 });
    const begun: string[] = [];
    const { named, endFirst } = work(begun);
    const gone = new AbortController();
    const asked = [1, 2].map((at) => queue.run("gone", gone.signal, named(`gone ${at}`)));
    void queue.run("other", signal, named("other"));
    gone.abort(new Error("went away"));
    for (const one of asked) await expect(one).rejects.toThrow("went away");
    expect(begun).toEqual(["gone 1"]);
    await endFirst();
    expect(begun).toEqual(["gone 1", "other"]);
  });

  test("closing ends what waits", async () => {
    const queue = createFairQueue({ limit: 1, perCaller: 1 });
    void queue.run("one", signal, work([]).named("one"));
    const waiting = queue.run("one", signal, work([]).named("two"));
    queue.close();
    await expect(waiting).rejects.toThrow(StoreUnavailable);
    await expect(queue.run("one", signal, work([]).named("three"))).rejects.toThrow(StoreUnavailable);
  });
});

function messages(count: number): DataMessage[] {
  return Array.from({ length: count }, (_, at) => ({
    delivery: null,
    timestamp: at,
    deviceId: "pump",
    topic: "db/pump/x",
    payload: Buffer.from(`${at}`),
    encoding: "text",
  }));
}

/** A page as a key asks for it, of all records or of those that a search of two letters reads through. */
function read(store: DataStore, caller: string, filter?: string) {
  const page = { caller, skip: 0, limit: 100, maxBytes: 500_000, searchMs: 60_000 };
  return store.readPage({ order: "asc", ...(filter === undefined ? {} : { filter }) }, page, signal);
}

test("50 searches of one key hold up a query and a search of another by a slice each", async () => {
  // Each slice is one segment of ten records, so a search of all is 20 slices.
  await using temp = await tempStore({ readers: 1, segmentRecords: 10, sliceMs: 0 });
  await temp.store.append(messages(200));
  let slices = 0;
  temp.store.reader.threads[0]?.on("message", () => slices++);
  const greedy = Array.from({ length: 50 }, () => read(temp.store, "greedy", "~~"));

  expect((await read(temp.store, "other")).items).toHaveLength(100);
  // Its own ten segments, by turns with as many slices of the others, and the one under way.
  expect(slices).toBeLessThanOrEqual(2 * 10 + 1);
  slices = 0;
  expect((await read(temp.store, "other", "~~")).items).toHaveLength(0);
  expect(slices).toBeLessThanOrEqual(2 * 20 + 1);
  await Promise.all(greedy);
});

describeOverMongodb("searches over MongoDB", (mongodb) => {
  test("50 searches of one key, all held up in the database, leave another key's queries their permits", async () => {
    await using database = mongodb().newDatabase();
    await using gate = await startCommandGate(mongodb().port);
    const url = parseStoreUrl(database.storeUrlBehind(gate.port));
    if (url.kind !== "mongodb") throw new Error("not a MongoDB URL");
    const store = await openMongoDataStore(url, signal);
    try {
      await store.append(messages(200));
      gate.holdThoseWith("nosuchtext");
      const greedy = Array.from({ length: 50 }, () => read(store, "greedy", "nosuchtext"));
      await eventually(() => gate.holding > 0);
      expect((await read(store, "other")).items).toHaveLength(100);
      expect((await read(store, "other", "199")).items).toHaveLength(1);
      expect(gate.holding).toBeLessThanOrEqual(2);
      gate.release();
      await Promise.all(greedy);
    } finally {
      await store.close();
    }
  });
});
