import { mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createCallContext } from "@devmesh/service-kit/rpc/context";
import { ManualClock } from "@devmesh/service-kit/testing/manual-clock";
import { expect, test } from "@jest/globals";
import { createSummarizeFleet } from "../src/registry/fleet-summary.ts";
import { createSqliteDeviceStore } from "../src/store/device-store.sqlite.ts";
import { newDevice } from "./device-store.suite.ts";

const hour = 3_600_000;

test("the fleet in numbers has the most frequent versions, and is counted again, once for all callers, after ten seconds", async () => {
  const folder = mkdtempSync(join(tmpdir(), "devmesh-fleet-"));
  const clock = new ManualClock(new Date(100 * hour));
  const store = createSqliteDeviceStore(join(folder, "devices.db"));
  try {
    using call = createCallContext({ timeoutMs: 60_000, clock });
    let reads = 0;
    const counting: Pick<typeof store, "countByFirmware"> = {
      countByFirmware(...given) {
        reads++;
        return store.countByFirmware(...given);
      },
    };
    const summarize = createSummarizeFleet({ store: counting, clock });
    const insert = async (id: string, version: string | null, hoursAgo: number) => {
      const device = newDevice(id);
      const reported = version === null ? {} : { version };
      const shadow = { ...device.shadow, reported };
      const created_at = clock.now().getTime() - hoursAgo * hour;
      await store.insert({ ...device, shadow, created_at }, null, call.signal);
    };
    for (const [nth, version] of [..."ggabcdefh"].entries()) await insert(`d${nth}`, version, nth);
    await insert("none", null, 30);
    const first = await summarize({}, call as never);
    expect(first).toEqual({
      devices: 10,
      firmware: [{ version: "g", devices: 2 }, ...[..."abcde"].map((version) => ({ version, devices: 1 }))],
      other_firmware: 2,
      no_firmware: 1,
      silent: [
        { hours: 1, devices: 8 },
        { hours: 6, devices: 3 },
        { hours: 24, devices: 1 },
        { hours: 72, devices: 0 },
        { hours: 168, devices: 0 },
      ],
    });
    await insert("later", "z", 0);
    expect(await summarize({}, call as never)).toBe(first);
    await clock.advance(10_000);
    reads = 0;
    const shared = await Promise.all([1, 2, 3].map(() => summarize({}, call as never)));
    expect(shared.map(({ devices }) => devices)).toEqual([11, 11, 11]);
    expect(reads).toBe(1);
  } finally {
    await store.close();
    await rm(folder, { recursive: true });
  }
});
