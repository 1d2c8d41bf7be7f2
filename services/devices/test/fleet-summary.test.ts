import { mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createCallContext } from "@devmesh/service-kit/rpc/context";
import { ManualClock } from "@devmesh/service-kit/testing/manual-clock";
import { eventually } from "@devmesh/testkit/eventually";
import { expect, test } from "@jest/globals";
import { createSummarizeFleet } from "../src/registry/fleet-summary.ts";
import { createSqliteDeviceStore } from "../src/store/device-store.sqlite.ts";
import { newDevice } from "./device-store.suite.ts";

const hour = 3_600_000;

/** A store of ten devices, which counts how often it is read, and fails or takes as long as wanted. */
async function startCounting() {
  const folder = mkdtempSync(join(tmpdir(), "devmesh-fleet-"));
  const clock = new ManualClock(new Date(100 * hour));
  const store = createSqliteDeviceStore(join(folder, "devices.db"));
  const call = createCallContext({ timeoutMs: 100 * hour, clock });
  const reading = { times: 0, takesMs: 0, fails: false };
  const counting: Pick<typeof store, "countBy" | "countByFirmware"> = {
    countBy: store.countBy,
    async countByFirmware(...given) {
      reading.times++;
      if (reading.takesMs > 0) await clock.sleep(reading.takesMs);
      if (reading.fails) throw new Error("the store is away");
      return await store.countByFirmware(...given);
    },
  };
  const summarize = createSummarizeFleet({ store: counting, clock });
  const insert = async (id: string, version: string | null, hoursAgo: number, labels: string[] = []) => {
    const device = newDevice(id);
    const reported = version === null ? {} : { version };
    const shadow = { ...device.shadow, reported, tags: { labels } };
    const created_at = clock.now().getTime() - hoursAgo * hour;
    await store.insert({ ...device, shadow, created_at }, null, call.signal);
  };
  for (const [nth, version] of [..."ggabcdefh"].entries())
    await insert(`d${nth}`, version, nth, nth < 2 ? ["roof", "beta"] : ["roof"]);
  await insert("none", null, 30);
  await store.recordPresence([{ id: "d0", online: true, seen_at: clock.now().getTime() }], call.signal);
  return {
    clock,
    reading,
    insert,
    summarize: () => summarize({}, call as never),
    async [Symbol.asyncDispose]() {
      call[Symbol.dispose]();
      await store.close();
      await rm(folder, { recursive: true });
    },
  };
}

test("the fleet in numbers has presence, silence, the most frequent versions and labels", async () => {
  await using fleet = await startCounting();
  expect(await fleet.summarize()).toEqual({
    counted_at: new Date(100 * hour).toISOString(),
    devices: 10,
    online: 1,
    firmware: [{ version: "g", devices: 2 }, ...[..."abcde"].map((version) => ({ version, devices: 1 }))],
    other_firmware: 2,
    no_firmware: 1,
    labels: [
      { label: "roof", devices: 9 },
      { label: "beta", devices: 2 },
    ],
    other_labels: 0,
    silent: [
      { hours: 1, devices: 8 },
      { hours: 6, devices: 3 },
      { hours: 24, devices: 1 },
      { hours: 72, devices: 0 },
      { hours: 168, devices: 0 },
    ],
  });
});

test("labels that are not listed are added up", async () => {
  await using fleet = await startCounting();
  const labels = Array.from({ length: 25 }, (_, nth) => `l${nth}`);
  await fleet.insert("labelled", null, 0, labels);
  const summary = await fleet.summarize();
  expect(summary.labels).toHaveLength(20);
  expect(summary.other_labels).toBe(25 + 2 - 20);
});

test("the fleet is counted again, once for all callers, after ten seconds, and callers wait for no count but the first", async () => {
  await using fleet = await startCounting();
  const first = await fleet.summarize();
  await fleet.insert("later", "z", 0);
  await fleet.clock.advance(9_999);
  expect(await fleet.summarize()).toBe(first);
  expect(fleet.reading.times).toBe(1);
  await fleet.clock.advance(1);
  fleet.reading.takesMs = 1_000;
  const meanwhile = await Promise.all([1, 2, 3].map(fleet.summarize));
  expect(meanwhile).toEqual([first, first, first]);
  expect(fleet.reading.times).toBe(2);
  await fleet.clock.advance(1_000);
  await eventually(async () => (await fleet.summarize()).devices === 11);
  expect(fleet.reading.times).toBe(2);
});

test("a count that takes long is repeated after fifty times as long, and only while somebody asks", async () => {
  await using fleet = await startCounting();
  fleet.reading.takesMs = 1_000;
  const first = fleet.summarize();
  await fleet.clock.advance(1_000);
  await first;
  await fleet.clock.advance(48_000);
  await fleet.summarize();
  expect(fleet.reading.times).toBe(1);
  await fleet.clock.advance(1_000_000);
  expect(fleet.reading.times).toBe(1);
  await fleet.insert("later", "z", 0);
  const next = fleet.summarize();
  await fleet.clock.advance(1_000);
  // What is twice as old is not answered.
  expect((await next).devices).toBe(11);
});

test("a count that fails is that of those who wait for it, and is tried again", async () => {
  await using fleet = await startCounting();
  fleet.reading.fails = true;
  await expect(fleet.summarize()).rejects.toThrow("the store is away");
  fleet.reading.fails = false;
  const first = await fleet.summarize();
  fleet.reading.fails = true;
  await fleet.clock.advance(10_000);
  expect(await fleet.summarize()).toBe(first);
  await fleet.clock.advance(10_000);
  await expect(fleet.summarize()).rejects.toThrow("the store is away");
});
