import { join } from "node:path";
import { type MongoUrl, parseStoreUrl } from "@devmesh/store/store-url";
import { describeOverMongodb } from "@devmesh/testkit/describe-over-mongodb";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { describe, expect, test } from "@jest/globals";
import { changeStored } from "../src/store/change-stored.ts";
import { openMongoWebhookStore } from "../src/store/webhook-store.mongodb.ts";
import { openSqliteWebhookStore } from "../src/store/webhook-store.sqlite.ts";
import type { WebhookStore } from "../src/store/webhook-store.ts";
import { storedWebhook } from "./stored-webhook.ts";

const { signal } = new AbortController();

interface StoreUnderTest extends AsyncDisposable {
  /** Each call opens one and the same store. */
  open(): Promise<WebhookStore>;
}

function describeStore(newStore: () => Promise<StoreUnderTest>): void {
  test("keeps webhooks, the oldest first, also after it was closed", async () => {
    await using place = await newStore();
    const first = await place.open();
    const [one, other] = [
      storedWebhook({ id: "wh_1" }),
      storedWebhook({ id: "wh_2", url: "https://b.example/" }),
    ];
    expect(await first.insert(other, 2, signal)).toBe(true);
    expect(await first.insert(one, 2, signal)).toBe(true);
    expect(await first.insert(storedWebhook({ id: "wh_3" }), 2, signal)).toBe(false);
    await first.close();
    const second = await place.open();
    await second.ping(signal);
    expect(await second.list(signal)).toEqual([one, other]);
    expect(await second.find("wh_2", signal)).toEqual(other);
    expect(await second.remove("wh_2", signal)).toBe(true);
    expect(await second.remove("wh_2", signal)).toBe(false);
    expect(await second.find("wh_2", signal)).toBeNull();
    await second.close();
  });

  test("stores as many of those that come at the same time as there may be", async () => {
    await using place = await newStore();
    const store = await place.open();
    const insertMany = (begin: string) =>
      Promise.all(
        Array.from({ length: 20 }, (_, at) =>
          store.insert(storedWebhook({ id: `wh_${begin}${at}` }), 3, signal),
        ),
      );
    expect((await insertMany("a")).filter(Boolean)).toHaveLength(3);
    const [first, second] = await store.list(signal);
    for (const id of [first?.id, second?.id, "wh_none"]) await store.remove(id ?? "", signal);
    expect((await insertMany("b")).filter(Boolean)).toHaveLength(2);
    expect(await store.list(signal)).toHaveLength(3);
    await store.correctCounts(signal);
    await store.close();
  });

  test("changes a webhook only from the revision before, so that no writer loses what another wrote", async () => {
    await using place = await newStore();
    const store = await place.open();
    const webhook = storedWebhook({ id: "wh_1" });
    await store.insert(webhook, 50, signal);
    expect(await store.change({ ...webhook, revision: 2, name: "a" }, signal)).toBe(true);
    expect(await store.change({ ...webhook, revision: 2, name: "b" }, signal)).toBe(false);
    const count = () =>
      changeStored(store, "wh_1", (row) => ({ ...row, failed_attempts: row.failed_attempts + 1 }), signal);
    await Promise.all(Array.from({ length: 10 }, count));
    expect(await store.find("wh_1", signal)).toMatchObject({ name: "a", revision: 12, failed_attempts: 10 });
    await store.close();
  });
}

describe("webhooks in SQLite", () => {
  describeStore(async () => {
    const folder = await tempFolder();
    return {
      open: async () => openSqliteWebhookStore(join(folder.path, "webhooks.db")),
      [Symbol.asyncDispose]: () => folder.remove(),
    };
  });
});

describeOverMongodb("webhooks in MongoDB", (mongodb) => {
  describeStore(async () => {
    const database = mongodb().newDatabase();
    const url = parseStoreUrl(database.storeUrl) as MongoUrl;
    return {
      open: () => openMongoWebhookStore(url, signal),
      [Symbol.asyncDispose]: async () => await database[Symbol.asyncDispose](),
    };
  });
});
