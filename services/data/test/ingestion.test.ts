import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { DataRecord } from "@devmesh/contracts/model/data-record";
import { eventually } from "@devmesh/testkit/eventually";
import { type StartedService, startService } from "@devmesh/testkit/service-process";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { type CallOptions, type DataCaller, dataCaller } from "./data-caller.ts";
import { type DeviceBroker, startDeviceBroker } from "./device-broker.ts";

let broker: DeviceBroker;
let caller: DataCaller;
beforeAll(async () => {
  broker = await startDeviceBroker();
  caller = dataCaller(await broker.connectService("gateway"));
});
afterAll(async () => {
  await broker[Symbol.asyncDispose]();
});

/**
 * A service on a new store, which outlives its process. In the end it is stopped in order: what one that is
 * killed has not acknowledged yet would be delivered into the store of the next test.
 */
async function withService(
  run: (start: () => ReturnType<typeof startService>, path: string) => Promise<void>,
) {
  await using folder = await tempFolder();
  const path = join(folder.path, "data.db");
  await using started = new AsyncDisposableStack();
  const services: StartedService[] = [];
  await run(async () => {
    const service = await startService("data", { ...broker.serviceEnvironment, STORE_URL: `sqlite:${path}` });
    services.push(started.use(service));
    return service;
  }, path);
  for (const service of services) await service.end("SIGTERM");
}

async function recordsOf(query: CallOptions, atLeast: number): Promise<DataRecord[]> {
  return await eventually(
    async () => {
      const records = await caller.allRecords(query);
      return records.length >= atLeast ? records : null;
    },
    { everyMs: 50 },
  );
}

describe("ingestion from the broker", () => {
  test("stores what a device publishes at QoS 0, 1 and 2, each once, with its topic as it was", async () => {
    await withService(async (start) => {
      const service = await start();
      const device = await broker.connectDevice("pump");
      const topics = ["temp", "a.b", "a//b", "a./", "", "é/東京", "..", "x.y/.z"];
      for (const [at, name] of topics.entries()) {
        await device.publish(`db/pump/${name}`, `${name}@${at}`, (at % 3) as 0 | 1 | 2);
      }
      const records = await recordsOf({}, topics.length);
      expect(records.map(({ topic, message }) => `${topic} ${message}`).sort()).toEqual(
        topics.map((name, at) => `db/pump/${name} ${name}@${at}`).sort(),
      );
      expect(records.every((record) => Math.abs(Date.parse(record.timestamp) - Date.now()) < 60_000)).toBe(
        true,
      );
      const metrics = await service.metrics();
      expect(metrics).toMatch(/devmesh_data_records_stored_total\{qos="0"\} 3/);
      expect(metrics).toMatch(/devmesh_data_records_stored_total\{qos="1"\} 5/);
      // It is acknowledged after it is stored, and the broker counts that later.
      await eventually(async () => /devmesh_data_backlog_messages 0/.test(await service.metrics()));
      await device.leave();
    });
  });

  test("what cannot be stored is counted and does not hold up what follows", async () => {
    await withService(async (start) => {
      const service = await start();
      const device = await broker.connectDevice("pump");
      await device.publish("db/pump", "no name", 1);
      await device.publish("db/pump/*", "wildcard", 1);
      await device.publish("db/pump/large", "x".repeat(256 * 1024 + 1), 1);
      await device.publish("db/pump/largest", "x".repeat(256 * 1024), 1);
      await device.publish("db/pump/binary", Buffer.from([0xff, 0x00]), 1);
      const records = await recordsOf({}, 2);
      expect(records.map(({ topic }) => topic)).toEqual(["db/pump/largest", "db/pump/binary"]);
      expect(records[0]?.message).toHaveLength(256 * 1024);
      expect(records[1]).toMatchObject({ message: "/wA=", encoding: "base64" });
      const metrics = await service.metrics();
      expect(metrics).toMatch(/devmesh_data_messages_dropped_total\{reason="no_name"\} 1/);
      expect(metrics).toMatch(/devmesh_data_messages_dropped_total\{reason="too_large"\} 1/);
      await device.leave();
    });
  });

  test("kill -9 under load loses no acknowledged message and stores none twice", async () => {
    await withService(async (start) => {
      let service = await start();
      const device = await broker.connectDevice("pump");
      const acknowledged: number[] = [];
      let next = 0;
      let done = false;
      const publisher = async () => {
        while (!done) {
          const sequence = next++;
          await device.publish("db/pump/load", String(sequence), 1);
          acknowledged.push(sequence);
        }
      };
      const publishers = Array.from({ length: 50 }, publisher);
      for (let kill = 0; kill < 3; kill++) {
        const before = acknowledged.length;
        await eventually(() => acknowledged.length > before + 2_000);
        await service.end("SIGKILL");
        service = await start();
      }
      done = true;
      await Promise.all(publishers);
      expect(acknowledged.length).toBeGreaterThan(6_000);
      const records = await recordsOf({}, acknowledged.length);
      const stored = records.map((record) => Number(record.message));
      expect(stored.length).toBe(acknowledged.length);
      expect(new Set(stored)).toEqual(new Set(acknowledged));
      expect(await service.end("SIGTERM")).toBe(0);
      await device.leave();
    });
  }, 180_000);

  test("a store that takes nothing turns readiness red, and what came meanwhile is stored when it is back", async () => {
    await withService(async (start, path) => {
      const service = await start();
      const device = await broker.connectDevice("pump");
      using other = new DatabaseSync(path);
      other.exec("ALTER TABLE last_record RENAME TO away");
      await device.publish("db/pump/x", "1", 1);
      await eventually(async () => (await fetch(`${service.ops}/readyz`)).status === 503);
      other.exec("ALTER TABLE away RENAME TO last_record");
      expect((await recordsOf({}, 1)).map((record) => record.message)).toEqual(["1"]);
      await eventually(async () => (await fetch(`${service.ops}/readyz`)).status === 200);
      await device.leave();
    });
  });

  test("a purged device's messages are refused until it is admitted, then only later ones are taken", async () => {
    await withService(async (start) => {
      const service = await start();
      const device = await broker.connectDevice("pump");
      const other = await broker.connectDevice("ab");
      await device.publish("db/pump/x", "before", 1);
      await other.publish("db/ab/x", "other", 1);
      await recordsOf({}, 2);
      await caller.client.purgeDevice({ device_id: "pump" }, caller.call());
      expect((await caller.allRecords({})).map((record) => record.message)).toEqual(["other"]);
      await device.publish("db/pump/x", "refused", 1);
      await eventually(async () => /reason="device_deleted"\} 1/.test(await service.metrics()));
      await caller.client.admitDevice({ device_id: "pump" }, caller.call());
      await device.publish("db/pump/x", "after", 1);
      const records = await recordsOf({ device_id: "pump" }, 1);
      expect(records.map((record) => record.message)).toEqual(["after"]);
      await device.leave();
      await other.leave();
    });
  });
});
