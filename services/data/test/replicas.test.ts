import { setTimeout as pause } from "node:timers/promises";
import type { DataRecord } from "@devmesh/contracts/model/data-record";
import { describeOverMongodb } from "@devmesh/testkit/describe-over-mongodb";
import { eventually } from "@devmesh/testkit/eventually";
import type { TestDatabase } from "@devmesh/testkit/mongodb";
import { type StartedService, startService } from "@devmesh/testkit/service-process";
import { startTcpProxy } from "@devmesh/testkit/tcp-proxy";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { type DataCaller, dataCaller } from "./data-caller.ts";
import { type DeviceBroker, startDeviceBroker } from "./device-broker.ts";

/** Some hundreds a second: what piles up while a replica is missing is soon stored. */
const publishEveryMs = 3;

/** Publishes numbers one after the other, each when the one before was acknowledged, until stopped. */
function publishNumbers(
  device: { publish(topic: string, payload: string, qos: 1): Promise<void> },
  topic: string,
) {
  let acknowledged = 0;
  let stopped = false;
  const publishing = (async () => {
    while (!stopped) {
      await device.publish(topic, String(acknowledged), 1);
      acknowledged++;
      await pause(publishEveryMs);
    }
  })();
  return {
    get acknowledged() {
      return acknowledged;
    },
    async stop() {
      stopped = true;
      await publishing;
      return acknowledged;
    },
  };
}

/** That these are the numbers from 0 to `count`, each once and in order; it says where they begin not to be. */
function expectCounting(stored: readonly number[], count: number): void {
  const at = stored.findIndex((number, index) => number !== index);
  expect({
    stored: stored.length,
    wrong: at === -1 ? [] : stored.slice(Math.max(0, at - 2), at + 5),
  }).toEqual({
    stored: count,
    wrong: [],
  });
}

describeOverMongodb("the service over MongoDB", (mongodb) => {
  let broker: DeviceBroker;
  let caller: DataCaller;
  let database: TestDatabase;
  beforeAll(async () => {
    broker = await startDeviceBroker();
    caller = dataCaller(await broker.connectService("gateway"));
  });
  afterAll(async () => {
    await broker?.[Symbol.asyncDispose]();
  });
  beforeEach(async () => {
    database = mongodb().newDatabase();
  });
  afterEach(async () => {
    await database?.[Symbol.asyncDispose]();
  });

  const start = (storeUrl = database.storeUrl) =>
    startService("data", { ...broker.serviceEnvironment, STORE_URL: storeUrl });

  async function storedOf(device: string, atLeast: number): Promise<readonly number[]> {
    const all = async (): Promise<DataRecord[] | null> => {
      const found = await caller.allRecords({ device_id: device }).catch(() => []);
      return found.length >= atLeast ? found : null;
    };
    const records = await eventually(all, { withinMs: 40_000, everyMs: 100 });
    return records.map((record) => Number(record.message));
  }

  const storedBy = (service: StartedService) => service.metric('devmesh_data_records_stored_total{qos="1"}');

  const statusOf = async ({ ops }: StartedService) => (await fetch(`${ops}/readyz`)).status;

  test("of two replicas one stores and both answer; when it is killed the other goes on in order, nothing lost or doubled", async () => {
    await using first = await start();
    await using second = await start();
    const device = await broker.connectDevice("pump");
    const other = await broker.connectDevice("ab");
    const published = [
      publishNumbers(device, "db/pump/count"),
      publishNumbers(other, "db/ab/count"),
    ] as const;
    await eventually(() => published.every(({ acknowledged }) => acknowledged > 300));
    await eventually(async () => (await storedBy(first)) + (await storedBy(second)) > 200);
    const [leader, follower] = (await storedBy(first)) > 0 ? [first, second] : [second, first];
    expect(await storedBy(follower)).toBe(0);

    await leader.end("SIGKILL");
    const killedAt = performance.now();
    await eventually(async () => (await storedBy(follower)) > 0, { withinMs: 40_000, everyMs: 100 });
    expect(performance.now() - killedAt).toBeLessThan(25_000);
    for (const [at, { stop }] of published.entries()) {
      const acknowledged = await stop();
      expectCounting(await storedOf(at === 0 ? "pump" : "ab", acknowledged), acknowledged);
    }
    await device.leave();
    await other.leave();
  });

  test("a replica that stops in peace hands over at once", async () => {
    await using first = await start();
    await using second = await start();
    const device = await broker.connectDevice("pump");
    const published = publishNumbers(device, "db/pump/count");
    await eventually(async () => (await storedBy(first)) + (await storedBy(second)) > 100);
    const [leader, follower] = (await storedBy(first)) > 0 ? [first, second] : [second, first];
    expect(await leader.end("SIGTERM")).toBe(0);
    await eventually(async () => (await storedBy(follower)) > 0, { withinMs: 12_000, everyMs: 50 });
    const acknowledged = await published.stop();
    expectCounting(await storedOf("pump", acknowledged), acknowledged);
    await device.leave();
  });

  test.each(["cut", "stall"] as const)(
    "while its database is away (%s) it says so, and goes on in order by itself when it is back, nothing lost or doubled",
    async (how) => {
      await using proxy = await startTcpProxy(mongodb().port);
      await using service = await start(database.storeUrlBehind(proxy.port));
      const device = await broker.connectDevice("pump");
      const published = publishNumbers(device, "db/pump/count");
      await eventually(async () => (await storedBy(service)) > 100);

      proxy[how]();
      await eventually(async () => (await statusOf(service)) === 503);
      const query = caller.client.queryRecords(
        { principal: { kind: "master" }, limit: 1 },
        { ...caller.call() },
      );
      await expect(query).rejects.toMatchObject({
        code: how === "cut" ? "unavailable" : expect.stringMatching(/unavailable|deadline_exceeded/),
      });
      expect((await fetch(`${service.ops}/metrics`)).status).toBe(200);
      const before = published.acknowledged;
      await eventually(() => published.acknowledged > before + 100);

      proxy.restore();
      await eventually(async () => (await statusOf(service)) === 200);
      const acknowledged = await published.stop();
      expectCounting(await storedOf("pump", acknowledged), acknowledged);
      await device.leave();
    },
  );
});
