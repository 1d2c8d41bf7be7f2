import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { StoreUnavailable } from "@devmesh/store/store-unavailable";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { describe, expect, test } from "@jest/globals";
import { openSqliteDataStore, type SqliteDataStoreOptions } from "../src/data-store.sqlite.ts";
import { describeDataStore } from "./data-store.suite.ts";

/** Opens a store in a folder of its own. */
async function open(options: SqliteDataStoreOptions) {
  const folder = await tempFolder();
  const path = join(folder.path, "data.db");
  let store = openSqliteDataStore(path, options);
  return {
    store,
    async reopen() {
      await store.close();
      store = openSqliteDataStore(path, options);
      return store;
    },
    async dispose() {
      await store.close();
      await folder.remove();
    },
  };
}

describeDataStore("SQLite", () => open({ readers: 1 }));
// Small segments, so that each query crosses many of them.
describeDataStore("SQLite in small segments", () =>
  open({ readers: 2, segmentRecords: 7, segmentBytes: 100_000 }),
);

test("syncing to the disk folds the write-ahead log into the database file", async () => {
  const folder = await tempFolder();
  const path = join(folder.path, "data.db");
  const store = openSqliteDataStore(path, { readers: 1 });
  try {
    const payload = Buffer.from("a message that stands nowhere else");
    const message = { delivery: null, timestamp: 0, deviceId: "ab", topic: "db/ab/x", payload } as const;
    await store.append([{ ...message, encoding: "text" }]);
    const holds = async () => (await readFile(path)).includes(payload);
    expect(await holds()).toBe(false);
    await store.syncToDisk();
    expect(await holds()).toBe(true);
  } finally {
    await store.close();
    await folder.remove();
  }
});

describe("the reading threads of SQLite", () => {
  const everything = { skip: 0, limit: 10, maxBytes: 500_000, searchMs: 1_000 };

  test("one that dies fails its query cleanly and is replaced", async () => {
    const under = await open({ readers: 1 });
    try {
      const { signal } = new AbortController();
      const [thread] = under.store.reader.threads;
      // Asked when its end is certain and not told yet: a moment earlier, it might still answer.
      const ended = thread?.terminate();
      await expect(under.store.readPage({ order: "asc" }, everything, signal)).rejects.toThrow(
        StoreUnavailable,
      );
      await ended;
      expect(await under.store.readPage({ order: "asc" }, everything, signal)).toEqual({
        next: null,
        items: [],
      });
      expect(under.store.reader.threads).toHaveLength(1);
    } finally {
      await under.dispose();
    }
  });

  test("what Node tells of a thread under --watch is not taken for its answer", async () => {
    const under = await open({ readers: 1 });
    try {
      const { signal } = new AbortController();
      const [thread] = under.store.reader.threads;
      const queries = [1, 2].map(() => under.store.readPage({ order: "asc" }, everything, signal));
      thread?.emit("message", { "watch:import": ["node:fs"] });
      expect(await Promise.all(queries)).toEqual([1, 2].map(() => ({ next: null, items: [] })));
    } finally {
      await under.dispose();
    }
  });

  test("closing ends the queries that wait", async () => {
    const under = await open({ readers: 1 });
    const { signal } = new AbortController();
    const ask = () => under.store.readPage({ order: "asc" }, everything, signal);
    // The one that the only thread is at may be answered before that ends.
    const begun = ask().catch((error: unknown) => expect(error).toBeInstanceOf(StoreUnavailable));
    const waiting = [ask(), ask()].map((query) => expect(query).rejects.toThrow(StoreUnavailable));
    await under.dispose();
    await Promise.all([begun, ...waiting]);
  });

  test("a second process is refused", async () => {
    const folder = await tempFolder();
    const path = join(folder.path, "data.db");
    const store = openSqliteDataStore(path);
    expect(() => openSqliteDataStore(path)).toThrow(/another process holds the store/);
    await store.close();
    await folder.remove();
  });
});
