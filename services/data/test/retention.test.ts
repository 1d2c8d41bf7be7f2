import { createLogger } from "@devmesh/service-kit/logger";
import { createMetrics } from "@devmesh/service-kit/metrics";
import { ManualClock } from "@devmesh/service-kit/testing/manual-clock";
import { describe, expect, test } from "@jest/globals";
import { createDataMetrics } from "../src/data-metrics.ts";
import { createPurges } from "../src/retention/purge.ts";
import { createRetention } from "../src/retention/retention.ts";
import type { DataMessage, DataStore } from "../src/store/data-store.ts";
import { tempStore } from "./temp-store.ts";

const log = createLogger({ service: "data", level: "silent" });
const day = 86_400_000;

function keeping(store: DataStore, clock: ManualClock, bounds: { days?: number; maxBytes?: number } = {}) {
  const metrics = createDataMetrics(createMetrics().registry, store, async () => 0);
  const { signal } = new AbortController();
  const purges = createPurges({ store, metrics, log, signal });
  const { days = 30, maxBytes = Number.MAX_SAFE_INTEGER } = bounds;
  const series = { seriesDays: 730, maxSeriesBytes: Number.MAX_SAFE_INTEGER };
  const retention = createRetention({ store, purges, metrics, clock, log, days, maxBytes, ...series });
  return { purges, retention, signal, metrics };
}

function messages(count: number, timestamp: number, deviceId = "pump"): DataMessage[] {
  return Array.from({ length: count }, (_, at) => ({
    delivery: null,
    timestamp,
    deviceId,
    topic: `db/${deviceId}/x`,
    payload: Buffer.from(`${at}:`.padEnd(300, "abc")),
    encoding: "text",
  }));
}

async function count(store: DataStore): Promise<number> {
  const { signal } = new AbortController();
  let after: string | undefined;
  let records = 0;
  do {
    const bounds = { caller: "test", skip: 0, limit: null, maxBytes: 512 * 1024, searchMs: 10_000 };
    const page = await store.readPage(
      { order: "asc" },
      { ...bounds, ...(after === undefined ? {} : { after }) },
      signal,
    );
    records += page.items.length;
    after = page.next ?? undefined;
  } while (after !== undefined);
  return records;
}

describe("retention", () => {
  test("deletes records when they have become too old, not before", async () => {
    await using temp = await tempStore();
    const clock = new ManualClock();
    const { retention, signal, metrics } = keeping(temp.store, clock, { days: 2 });
    await temp.store.append(messages(1_200, clock.now().getTime()));
    await clock.advance(day);
    await temp.store.append(messages(10, clock.now().getTime()));
    await retention.sweep(signal);
    expect(await count(temp.store)).toBe(1_210);
    await clock.advance(day + 1);
    await retention.sweep(signal);
    expect(await count(temp.store)).toBe(10);
    expect((await metrics.deleted.get()).values).toEqual([{ labels: { cause: "age" }, value: 1_200 }]);
  });

  test("keeps the store within its size, the newest records in it", async () => {
    await using temp = await tempStore({ segmentBytes: 100_000 });
    const clock = new ManualClock();
    const maxBytes = 3_000_000;
    const { retention, signal } = keeping(temp.store, clock, { maxBytes });
    for (let round = 0; round < 10; round++)
      await temp.store.append(messages(1_000, clock.now().getTime() + round));
    expect((await temp.store.size()).bytes).toBeGreaterThan(maxBytes);
    await retention.sweep(signal);
    const { bytes, oldest } = await temp.store.size();
    expect(bytes).toBeLessThanOrEqual(maxBytes);
    expect(bytes).toBeGreaterThan(maxBytes * 0.7);
    expect(oldest).toBeGreaterThan(clock.now().getTime());
    expect(await count(temp.store)).toBeGreaterThan(2_000);
  });

  test("160 messages of 200 KB of one device cost another none of its records", async () => {
    await using temp = await tempStore({ segmentBytes: 256 * 1024 });
    const clock = new ManualClock();
    const { retention, signal } = keeping(temp.store, clock, { maxBytes: 16 * 1024 * 1024 });
    const now = clock.now().getTime();
    await temp.store.append(messages(1_000, now, "quiet"));
    const payload = Buffer.alloc(200_000, "flood ");
    for (let at = 0; at < 16; at++) {
      const flood = messages(10, now, "flood").map((message) => ({ ...message, payload }));
      await temp.store.append([...flood, ...messages(5, now, "quiet")]);
    }
    await retention.sweep(signal);
    expect((await temp.store.size()).bytes).toBeLessThanOrEqual(16 * 1024 * 1024);
    const page = { caller: "test", skip: 0, limit: null, maxBytes: 1e9, searchMs: 10_000 };
    const left = async (deviceId: string) =>
      (await temp.store.readPage({ order: "asc", deviceId }, page, signal)).items.length;
    expect(await left("quiet")).toBe(1_080);
    expect(await left("flood")).toBeGreaterThan(20);
  });

  test("forgets an admission when the messages it kept out would have expired", async () => {
    await using temp = await tempStore();
    const clock = new ManualClock();
    const { purges, retention, signal } = keeping(temp.store, clock, { days: 1 });
    await purges.purge("pump");
    await temp.store.admitDevice("pump", clock.now().getTime());
    const old = messages(1, clock.now().getTime());
    await retention.sweep(signal);
    expect(await temp.store.append(old)).toMatchObject({ refused: 1 });
    await clock.advance(day + 1);
    await retention.sweep(signal);
    expect(await temp.store.append(old)).toMatchObject({ stored: 1 });
    await retention.sweep(signal);
    expect(await count(temp.store)).toBe(0);
  });

  test("runs at once and every 30 s, until the service stops", async () => {
    await using temp = await tempStore();
    const clock = new ManualClock();
    const { retention } = keeping(temp.store, clock, { days: 1 });
    const stopping = new AbortController();
    await temp.store.append(messages(1, clock.now().getTime() - 2 * day));
    const running = retention.run(stopping.signal);
    while (clock.pending === 0) await new Promise((resolve) => setImmediate(resolve));
    expect(await count(temp.store)).toBe(0);
    await temp.store.append(messages(1, clock.now().getTime() - 2 * day));
    await clock.advance(30_000);
    while (clock.pending === 0) await new Promise((resolve) => setImmediate(resolve));
    expect(await count(temp.store)).toBe(0);
    stopping.abort();
    await running;
  });
});

describe("purging a device", () => {
  test("deletes its records only, and twice is once", async () => {
    await using temp = await tempStore();
    const { purges } = keeping(temp.store, new ManualClock());
    await temp.store.append([...messages(1_100, 1, "gone"), ...messages(5, 1, "here")]);
    await Promise.all([purges.purge("gone"), purges.purge("gone")]);
    expect(await count(temp.store)).toBe(5);
    expect(await temp.store.unfinishedPurges()).toEqual([]);
    await purges.purge("gone");
  });

  test("is resumed after a crash cut it off", async () => {
    await using temp = await tempStore();
    await temp.store.append(messages(10, 1, "gone"));
    await temp.store.refuseDevice("gone");
    await temp.store.deleteRecordsOf("gone", 3);
    const { retention, signal } = keeping(temp.store, new ManualClock(new Date(1)));
    await retention.sweep(signal);
    expect(await count(temp.store)).toBe(0);
    expect(await temp.store.unfinishedPurges()).toEqual([]);
  });
});
