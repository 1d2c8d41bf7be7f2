import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { StoreUnavailable } from "@devmesh/store/store-unavailable";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { describe, expect, test } from "@jest/globals";
import {
  openSqliteDataStore,
  type SqliteDataStore,
  type SqliteDataStoreOptions,
} from "../src/store/data-store.sqlite.ts";
import type { DataMessage, RecordSelection } from "../src/store/data-store.ts";
import { describeDataStore } from "./data-store.suite.ts";
import { describeSeries } from "./series.suite.ts";

/** Opens a store in a new folder, whose last record has had the id `lastId`. */
async function open(options: SqliteDataStoreOptions, lastId = 0) {
  const folder = await tempFolder();
  const path = join(folder.path, "data.db");
  let store = openSqliteDataStore(path, options);
  if (lastId > 0) {
    await store.close();
    const db = new DatabaseSync(path);
    db.prepare("UPDATE last_record SET id = ?").run(lastId);
    db.prepare("UPDATE rolled_up SET id = ?").run(lastId);
    db.close();
    store = openSqliteDataStore(path, options);
  }
  return {
    store,
    firstId: lastId + 1,
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
/** Small segments, and ids that begin at the end of a block of the indexes: each query crosses many, and its end. */
const openSmall = () =>
  open({ readers: 2, segmentRecords: 7, segmentBytes: 100_000, tailRecords: 3 }, 2 ** 15 - 20);
describeDataStore("SQLite in small segments", openSmall, { manyRecords: false });

describeSeries("SQLite", () => open({ readers: 2 }));
describeSeries("SQLite in small segments", openSmall);

function message(deviceId: string, text: string): DataMessage {
  return {
    delivery: null,
    timestamp: 0,
    deviceId,
    topic: `db/${deviceId}/x`,
    payload: Buffer.from(text),
    encoding: "text",
  };
}

test("a few records of light devices do not keep the search index of a flood in the file", async () => {
  const under = await open({ readers: 1, segmentBytes: 500_000 });
  try {
    for (let segment = 0; segment < 8; segment++) {
      const flood = Array.from({ length: 5 }, () => message("flood", randomBytes(75_000).toString("base64")));
      await under.store.append([message("quiet", `quiet ${segment}`), ...flood]);
    }
    const full = (await under.store.size()).bytes;
    while ((await under.store.deleteHeaviest(50, full / 4)) > 0);
    expect((await under.store.size()).bytes).toBeLessThanOrEqual(full / 4);
    const found = async (selection: Partial<RecordSelection>) => {
      const page = { caller: "test", skip: 0, limit: null, maxBytes: 1e9, searchMs: 10_000 };
      return await under.store.readPage({ order: "asc", ...selection }, page, new AbortController().signal);
    };
    expect((await found({ deviceId: "flood" })).items.length).toBeGreaterThan(5);
    expect((await found({ filter: "quiet " })).items).toHaveLength(8);
  } finally {
    await under.dispose();
  }
});

test("records that were not indexed before a restart are found, and weigh, after it", async () => {
  const under = await open({ readers: 1, tailRecords: 4 });
  try {
    const found = async (store: SqliteDataStore) => {
      const page = { caller: "test", skip: 0, limit: null, maxBytes: 500_000, searchMs: 10_000 };
      const selection = { order: "asc", filter: "needle" } as const;
      return (await store.readPage(selection, page, new AbortController().signal)).items.map(({ id }) => id);
    };
    await under.store.append(["one", "two", "three", "four"].map((text) => message("ab", `needle ${text}`)));
    await under.store.append([message("cd", "needle five"), message("cd", `needle ${"x".repeat(5_000)}`)]);
    const store = await under.reopen();
    expect(await found(store)).toEqual([1, 2, 3, 4, 5, 6]);
    await store.append([message("ab", "needle seven")]);
    expect(await found(store)).toEqual([1, 2, 3, 4, 5, 6, 7]);
    expect(await store.deleteHeaviest(1, 0)).toBe(1);
    expect(await found(store)).toEqual([1, 2, 3, 4, 6, 7]);
    await store.append([message("ab", "needle eight"), message("ab", "needle nine")]);
    expect(await found(store)).toEqual([1, 2, 3, 4, 6, 7, 8, 9]);
  } finally {
    await under.dispose();
  }
});

describe("the reading threads of SQLite", () => {
  const everything = { caller: "test", skip: 0, limit: 10, maxBytes: 500_000, searchMs: 1_000 };

  test("one that dies fails its query cleanly and is replaced", async () => {
    const under = await open({ readers: 1 });
    try {
      const { signal } = new AbortController();
      const [thread] = under.store.reader.threads;
      // The thread is terminated and the reader has no event yet: a moment earlier, it might still answer.
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

  test("a message of Node about a thread under --watch is not taken for its reply", async () => {
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
