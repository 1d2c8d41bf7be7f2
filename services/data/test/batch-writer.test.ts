import { DatabaseSync } from "node:sqlite";
import type { Finding } from "@devmesh/device-broker/diagnosis-reporter";
import { createLogger } from "@devmesh/service-kit/logger";
import { createMetrics } from "@devmesh/service-kit/metrics";
import { ManualClock } from "@devmesh/service-kit/testing/manual-clock";
import { StoreUnavailable } from "@devmesh/store/store-unavailable";
import { describe, expect, test } from "@jest/globals";
import { createDataMetrics } from "../src/data-metrics.ts";
import { type BatchWriter, createBatchWriter } from "../src/ingestion/batch-writer.ts";
import type { IncomingMessage } from "../src/ingestion/message-check.ts";
import { gatherQos0Messages } from "../src/ingestion/qos0-messages.ts";
import { type DataStore, maxPayloadBytes } from "../src/store/data-store.ts";
import { tempStore } from "./temp-store.ts";

const log = createLogger({ service: "data", level: "silent" });

function writerInto(store: DataStore, clock = new ManualClock()) {
  const metrics = createDataMetrics(createMetrics().registry, store, async () => 0);
  const reported: Finding[] = [];
  const writer = createBatchWriter({
    store,
    metrics,
    report: (finding) => reported.push(finding),
    log,
    clock,
    feed: { publish: () => undefined },
  });
  return {
    writer,
    reported,
    async dropped(reason: string) {
      const { values } = await metrics.dropped.get();
      return values.find(({ labels }) => labels.reason === reason)?.value ?? 0;
    },
  };
}

function incoming(topic: string, payload: string | Uint8Array, sequence?: number): IncomingMessage {
  return {
    topicLevels: topic.split("/"),
    payload: Buffer.from(payload),
    timestamp: 1_767_225_600_000,
    delivery: sequence === undefined ? null : { streamCreated: "2026-01-01T00:00:00Z", sequence },
  };
}

async function stored(store: DataStore) {
  const { signal } = new AbortController();
  const bounds = { caller: "test", skip: 0, limit: null, maxBytes: 512 * 1024, searchMs: 10_000 };
  return (await store.readPage({ order: "asc" }, bounds, signal)).items;
}

describe("a batch writer", () => {
  test("stores what can be stored, and counts the rest by reason without ever trying it again", async () => {
    await using temp = await tempStore();
    const { writer, dropped, reported } = writerInto(temp.store);
    await writer.write([
      incoming("db/pump/temp", "21", 1),
      incoming("db/pump", "no name", 2),
      incoming("db/-/x", "no device", 3),
      incoming("db/pump/x", Buffer.alloc(maxPayloadBytes + 1), 5),
      incoming("db/pump/bin", Buffer.from([0xff]), 6),
      incoming(`db/pump/${"long".repeat(2_000)}`, "x", 7),
    ]);
    expect(
      (await stored(temp.store)).map(({ topic, message, encoding }) => [topic, message, encoding]),
    ).toEqual([
      ["db/pump/temp", "21", undefined],
      ["db/pump/bin", "/w==", "base64"],
    ]);
    expect(reported).toMatchObject([
      { id: "pump", name: "publication_refused", reason: "no_name", topic: "db/pump" },
      { id: "pump", reason: "too_large", topic: "db/pump/x" },
      { id: "pump", reason: "topic_too_long" },
    ]);
    for (const reason of ["no_name", "no_device", "too_large", "topic_too_long"]) {
      expect([reason, await dropped(reason)]).toEqual([reason, 1]);
    }
  });

  test("a text that JSON would swell beyond a reply is shown as base64", async () => {
    await using temp = await tempStore();
    const { writer } = writerInto(temp.store);
    const nuls = "\0".repeat(maxPayloadBytes);
    await writer.write([incoming("db/pump/x", nuls, 1)]);
    const [record] = await stored(temp.store);
    expect(record?.encoding).toBe("base64");
    expect(Buffer.from(record?.message ?? "", "base64").toString("utf8") === nuls).toBe(true);
  });

  test("messages of a deleted device are counted as such", async () => {
    await using temp = await tempStore();
    const { writer, dropped } = writerInto(temp.store);
    await temp.store.refuseDevice("gone");
    await writer.write([incoming("db/gone/x", "1", 1), incoming("db/here/x", "2", 2)]);
    expect(await dropped("device_deleted")).toBe(1);
    expect((await stored(temp.store)).map((record) => record.device_id)).toEqual(["here"]);
  });

  test("a message that the store refuses for itself does not hold up the others", async () => {
    await using temp = await tempStore();
    const { writer, dropped } = writerInto(temp.store);
    using other = new DatabaseSync(temp.path);
    other.exec(`CREATE TRIGGER refuse BEFORE INSERT ON records WHEN NEW.topic = 'db/pump/bad'
      BEGIN SELECT RAISE(ABORT, 'no'); END`);
    await writer.write([
      incoming("db/pump/a", "1", 1),
      incoming("db/pump/bad", "2", 2),
      incoming("db/pump/b", "3", 3),
    ]);
    expect((await stored(temp.store)).map((record) => record.message)).toEqual(["1", "3"]);
    expect(await dropped("refused_by_store")).toBe(1);
  });

  test("a store that takes nothing leaves the batch unsettled, turns readiness red, and comes back by itself", async () => {
    await using temp = await tempStore();
    const { writer } = writerInto(temp.store);
    using other = new DatabaseSync(temp.path);
    other.exec("ALTER TABLE last_record RENAME TO away");
    const batch = [incoming("db/pump/a", "1", 1)];
    await expect(writer.write(batch)).rejects.toThrow(StoreUnavailable);
    await expect(writer.checkStore()).rejects.toThrow(StoreUnavailable);
    other.exec("ALTER TABLE away RENAME TO last_record");
    await writer.write(batch);
    await writer.checkStore();
    expect(await stored(temp.store)).toHaveLength(1);
  });

  test("where nothing is tried again, a write of its own tells whether the store is back", async () => {
    await using temp = await tempStore();
    const clock = new ManualClock();
    const { writer } = writerInto(temp.store, clock);
    using other = new DatabaseSync(temp.path);
    other.exec("ALTER TABLE last_record RENAME TO away");
    await expect(writer.write([incoming("db/pump/a", "1", 1)])).rejects.toThrow(StoreUnavailable);
    await clock.advance(30_000);
    await expect(writer.checkStore()).rejects.toThrow(StoreUnavailable);
    other.exec("ALTER TABLE away RENAME TO last_record");
    await writer.checkStore();
  });
});

describe("messages at QoS 0", () => {
  const bounds = { batch: 3, batchBytes: 1_000, waitMs: 50 };

  test("are stored in batches, at the latest when their wait is over", async () => {
    await using temp = await tempStore();
    const clock = new ManualClock();
    const { writer } = writerInto(temp.store);
    const messages = gatherQos0Messages({ writer, clock, ...bounds });
    for (const payload of ["1", "2", "3", "4"]) messages.add(incoming("db/pump/x", payload));
    await clock.advance(0);
    expect((await stored(temp.store)).map((record) => record.message)).toEqual(["1", "2", "3"]);
    await clock.advance(50);
    expect(await stored(temp.store)).toHaveLength(4);
    expect(clock.pending).toBe(0);
  });

  test("a batch ends before it weighs too much, but holds one message at least", async () => {
    await using temp = await tempStore();
    const clock = new ManualClock();
    const { writer } = writerInto(temp.store);
    const batches: number[] = [];
    const counting: BatchWriter = {
      ...writer,
      write(batch) {
        batches.push(batch.length);
        return writer.write(batch);
      },
    };
    const messages = gatherQos0Messages({ writer: counting, clock, ...bounds });
    for (const weight of [1_500, 600, 600, 300]) messages.add(incoming("db/pump/x", "x".repeat(weight)));
    await clock.advance(0);
    await clock.advance(50);
    expect(batches).toEqual([1, 1, 2]);
    expect((await stored(temp.store)).map((record) => record.message.length)).toEqual([1_500, 600, 600, 300]);
  });

  test("beyond the bound of what may wait they are dropped and counted", async () => {
    await using temp = await tempStore();
    const clock = new ManualClock();
    const { writer, dropped } = writerInto(temp.store);
    const messages = gatherQos0Messages({ writer, clock, ...bounds, maxWaiting: 2, maxWaitingBytes: 100 });
    messages.add(incoming("db/pump/x", "1"));
    messages.add(incoming("db/pump/x", "x".repeat(100)));
    messages.add(incoming("db/pump/x", "2"));
    messages.add(incoming("db/pump/x", "3"));
    expect(await dropped("overload")).toBe(2);
    await messages.stop();
    expect((await stored(temp.store)).map((record) => record.message)).toEqual(["1", "2"]);
  });

  test.each([
    ["messages", { maxWaiting: 30, maxWaitingBytes: 1_000_000 }, 1],
    ["bytes", { maxWaiting: 1_000, maxWaitingBytes: 3_000 }, 100],
  ])(
    "a device that floods the %s that may wait pushes out none of another's, only its own",
    async (_, most, weight) => {
      await using temp = await tempStore();
      const clock = new ManualClock();
      const { writer, dropped } = writerInto(temp.store);
      const messages = gatherQos0Messages({ writer, clock, ...bounds, batch: 1_000, ...most });
      const payload = (at: number) => `${at} `.padEnd(weight, "x").slice(0, weight);
      for (let at = 0; at < 100; at++) messages.add(incoming("db/flood/x", payload(at)));
      for (let at = 0; at < 10; at++) {
        messages.add(incoming("db/quiet/x", payload(at)));
        for (let more = 0; more < 20; more++) messages.add(incoming("db/flood/x", payload(more)));
      }
      expect(await dropped("overload")).toBe(100 + 10 + 200 - 30);
      await messages.stop();
      const devices = (await stored(temp.store)).map((record) => record.device_id);
      expect(devices.filter((device) => device === "quiet")).toHaveLength(10);
      expect(devices.filter((device) => device === "flood")).toHaveLength(20);
    },
  );

  test("wait for a store that takes nothing and are stored when it comes back", async () => {
    await using temp = await tempStore();
    const clock = new ManualClock();
    const { writer } = writerInto(temp.store);
    const messages = gatherQos0Messages({ writer, clock, ...bounds });
    using other = new DatabaseSync(temp.path);
    other.exec("ALTER TABLE last_record RENAME TO away");
    messages.add(incoming("db/pump/x", "1"));
    await clock.advance(50);
    for (const payload of ["2", "3", "4"]) messages.add(incoming("db/pump/x", payload));
    other.exec("ALTER TABLE away RENAME TO last_record");
    await clock.advance(949);
    expect(await stored(temp.store)).toEqual([]);
    await clock.advance(51);
    await clock.advance(50);
    expect((await stored(temp.store)).map((record) => record.message)).toEqual(["1", "2", "3", "4"]);
  });
});
