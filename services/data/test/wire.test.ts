import { join } from "node:path";
import { data, dataEvents } from "@devmesh/contracts/data";
import type { Principal } from "@devmesh/contracts/principal";
import { systemClock } from "@devmesh/service-kit/clock";
import { natsConnection } from "@devmesh/service-kit/connection/nats-connection";
import { createPublisher } from "@devmesh/service-kit/events/publisher";
import { serve } from "@devmesh/service-kit/rpc/serve";
import { eventually } from "@devmesh/testkit/eventually";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { DataEnv } from "../src/env.ts";
import { startData } from "../src/start-data.ts";
import type { DataMessage } from "../src/store/data-store.ts";
import { type CallOptions, type DataCaller, dataCaller } from "./data-caller.ts";
import { type DeviceBroker, startDeviceBroker } from "./device-broker.ts";
import { type TempStore, tempStore } from "./temp-store.ts";

const start = Date.parse("2026-01-01T00:00:00.000Z");

const running = new AsyncDisposableStack();
let broker: DeviceBroker;
let temp: TempStore;
/** What devices publish is stored once it has resolved. */
let storing = Promise.resolve();
let callers: readonly [DataCaller, DataCaller];

beforeAll(async () => {
  broker = running.use(await startDeviceBroker());
  temp = running.use(await tempStore());
  await startService();
  callers = [
    dataCaller(await broker.connectService("gateway")),
    dataCaller(await broker.connectService("gateway")),
  ];
  await temp.store.append(
    ["ab", "abc"].flatMap((deviceId) =>
      ["temp", "temp/in", "state"].map(
        (name, at): DataMessage => ({
          delivery: null,
          timestamp: start + at * 1_000,
          deviceId,
          topic: join("db", deviceId, name),
          payload: Buffer.from(`${deviceId} ${name}`),
          encoding: "text",
        }),
      ),
    ),
  );
});
afterAll(async () => await running.disposeAsync());

/** Starts the service over the store of the test, which writes beside it. */
async function startService(): Promise<void> {
  const bus = await broker.connectService("data");
  const stopping = new AbortController();
  const started = await startData({
    env: DataEnv.parse({
      ...broker.serviceEnvironment,
      STORE_URL: `sqlite:${temp.path}`,
      // The records of this test are older than usual.
      DATA_RETENTION_DAYS: "3650",
    }),
    bus,
    connectAs: (_check, user) => broker.connectAs("data", user),
    publisher: await createPublisher(bus, dataEvents),
    log: bus.log,
    clock: systemClock,
    metrics: bus.metrics,
    signal: stopping.signal,
    ready: () => undefined,
    store: {
      ...temp.store,
      async append(messages) {
        await storing;
        return await temp.store.append(messages);
      },
      close: async () => undefined,
    },
  });
  const served = serve(bus, data, started.implementation);
  await bus.flush();
  running.defer(async () => {
    stopping.abort();
    await served.drain(1_000);
    await started.stop();
    await started.close();
  });
}

async function messages(query: CallOptions): Promise<string[]> {
  return (await callers[0].allRecords(query)).map((record) => record.message);
}

const deviceKey: Principal = { kind: "device_key", device_id: "ab" };
const publicKey: Principal = { kind: "public_key", device_id: "ab" };

describe("who sees which records", () => {
  test("a master key sees all, or those of the device it names", async () => {
    expect(await messages({})).toHaveLength(6);
    expect(await messages({ device_id: "abc" })).toEqual(["abc temp", "abc temp/in", "abc state"]);
    expect(await messages({ device_id: "ab", topic: "temp/#" })).toEqual(["ab temp", "ab temp/in"]);
  });

  test("a device key sees the records of its device, whatever it asks", async () => {
    const own = ["ab temp", "ab temp/in", "ab state"];
    expect(await messages({ principal: deviceKey })).toEqual(own);
    expect(await messages({ principal: deviceKey, device_id: "ab" })).toEqual(own);
    expect(await messages({ principal: deviceKey, filter: "db/abc/" })).toEqual([]);
    expect(await messages({ principal: deviceKey, skip: -1_000_000 })).toEqual(own);
    expect(await messages({ principal: deviceKey, after: "0" })).toEqual(own);
    expect(await messages({ principal: deviceKey, topic: "#" })).toEqual(own);
  });

  test("a public key sees what the topic of its query names, below its device", async () => {
    expect(await messages({ principal: publicKey, topic: "temp/#" })).toEqual(["ab temp", "ab temp/in"]);
    expect(await messages({ principal: publicKey, topic: "+", order: "desc" })).toEqual([
      "ab state",
      "ab temp",
    ]);
    expect(await messages({ principal: publicKey, topic: "../abc/temp" })).toEqual([]);
  });

  test("numbers over time are for master keys, and for the device key of that device", async () => {
    const [{ client, call }] = callers;
    const hour = 3_600_000;
    const begin = Math.floor(Date.now() / hour) * hour - 3 * hour;
    await temp.store.append(
      [4, 6].map(
        (celsius, nth): DataMessage => ({
          delivery: null,
          timestamp: begin + nth * 60_000,
          deviceId: "heater",
          topic: "db/heater/temp",
          payload: Buffer.from(JSON.stringify({ celsius })),
          encoding: "text",
        }),
      ),
    );
    const ofHeater: Principal = { kind: "device_key", device_id: "heater" };
    const timeOf = (hours: number) => new Date(begin + hours * hour).toISOString();
    const read = (principal: Principal, more: object = {}) =>
      client.readSeries(
        {
          ...{ principal, device_id: "heater", topic: "temp", pointer: "/celsius" },
          ...{ from: timeOf(0), until: timeOf(1), every: "PT1H", ...more },
        },
        call(),
      );
    const spans = [{ start: begin, count: 2, min: 4, max: 6, sum: 10, first: 4, last: 6 }];
    const answer = { every: "PT1H", from: timeOf(0), until: timeOf(1), partial: false, spans };
    for (const principal of [{ kind: "master" }, ofHeater] as const)
      expect(await read(principal)).toEqual(answer);
    expect((await read(ofHeater, { every: "auto", until: timeOf(4), fill: true })).spans).toHaveLength(480);
    expect((await read(ofHeater, { until: timeOf(9) })).partial).toBe(true);
    for (const principal of [deviceKey, publicKey, { kind: "customer", customer_id: "c" }] as Principal[])
      await expect(read(principal)).rejects.toMatchObject({ code: "permission_denied" });
    const ofHolder: Principal = { kind: "public_key", device_id: "heater" };
    expect(await read(ofHolder)).toEqual(answer);
    const minutes = { every: "PT1M", fill: true, not_before: new Date(begin + 30_000).toISOString() };
    expect(await read(ofHolder, minutes)).toMatchObject({
      from: new Date(begin + 60_000).toISOString(),
      spans: [{ count: 1, min: 6 }, ...Array.from({ length: 58 }, () => ({ count: 0 }))],
    });
    await expect(read(ofHolder, { ...minutes, every: "PT1H" })).rejects.toMatchObject({
      details: [{ pointer: "/query/every", detail: expect.stringMatching(/no whole span/) }],
    });
    await temp.store.rollUp();
    const { series } = await client.listSeries({ principal: ofHeater, device_id: "heater" }, call());
    expect(series).toMatchObject([{ topic: "temp", pointer: "/celsius", last: 6 }]);
    await expect(
      client.listSeries({ principal: deviceKey, device_id: "heater" }, call()),
    ).rejects.toMatchObject({ reason: "device_mismatch" });
    for (const [more, pointer, detail] of [
      [{ until: timeOf(0) }, "/query/until", /later/],
      [{ tz: "Mars/Olympus" }, "/query/tz", /time zone/],
      [{ every: "PT1S" }, "/query/every", /; PT5S has fewer$/],
      [{ from: "1990-01-01T00:00:00.000Z", every: "PT1S" }, "/query/every", /; P\d+[DW] has fewer$/],
      [
        { from: "1990-01-01T00:00:00.000Z", until: "1990-01-02T00:00:00.000Z", every: "PT1S" },
        "/query/every",
        /; PT1H has fewer$/,
      ],
      [
        { from: "0001-01-01T00:00:00.000Z", until: "9999-01-01T00:00:00.000Z" },
        "/query/every",
        /in this range$/,
      ],
      [
        { from: "1990-01-01T00:00:00.000Z", until: "1990-02-01T00:00:00.000Z", every: "PT630M" },
        "/query/every",
        /whole hours/,
      ],
      [{ from: "1990-01-01T00:00:00.000Z", every: "P7D", tz: "Asia/Kolkata" }, "/query/tz", /whole hours/],
    ] as const)
      await expect(read(ofHeater, more)).rejects.toMatchObject({
        reason: "series_range_invalid",
        details: [{ pointer, detail: expect.stringMatching(detail) }],
      });
    await client.purgeDevice({ device_id: "heater" }, call());
    expect((await read(ofHeater)).spans).toEqual([]);
  });

  test("the newest record of each topic is for master keys, and for the device key of that device", async () => {
    const [{ client, call }] = callers;
    const newest = async (principal: Principal) => {
      const request = { principal, device_id: "ab" };
      const { items } = await client.readLatest({ ...request, limit: 10 }, call());
      const { count } = await client.countTopics(request, call());
      return [...items.map((record) => record.message), count];
    };
    for (const principal of [{ kind: "master" }, deviceKey] as const)
      expect(await newest(principal)).toEqual(["ab state", "ab temp", "ab temp/in", 3]);
    const other: Principal = { kind: "device_key", device_id: "abc" };
    await expect(newest(other)).rejects.toMatchObject({ reason: "device_mismatch" });
    for (const principal of [
      publicKey,
      { kind: "customer", customer_id: "c" },
      { kind: "device", device_id: "ab" },
    ] as const)
      await expect(newest(principal)).rejects.toMatchObject({ reason: "not_permitted" });
    const foreign = { principal: deviceKey, device_id: "ab", limit: 1, after: "db/abc/temp" };
    await expect(client.readLatest(foreign, call())).rejects.toMatchObject({ reason: "cursor_invalid" });
  });

  test.each<[string, CallOptions, string, string]>([
    [
      "a device key that names another device",
      { principal: deviceKey, device_id: "abc" },
      "permission_denied",
      "device_mismatch",
    ],
    [
      "a public key that names another device",
      { principal: publicKey, topic: "#", device_id: "abc" },
      "permission_denied",
      "device_mismatch",
    ],
    ["a public key without a topic", { principal: publicKey }, "permission_denied", "not_permitted"],
    [
      "a customer",
      { principal: { kind: "customer", customer_id: "c" } },
      "permission_denied",
      "not_permitted",
    ],
    ["a device", { principal: { kind: "device", device_id: "ab" } }, "permission_denied", "not_permitted"],
    ["a topic without a device", { topic: "#" }, "invalid_argument", "topic_unbound"],
    ["a NUL in the filter", { filter: "a\0b" }, "invalid_argument", "filter_invalid"],
    ["a foreign cursor", { after: "elsewhere" }, "invalid_argument", "cursor_invalid"],
    ["a cursor beside a negative skip", { after: "1", skip: -1 }, "invalid_argument", "cursor_invalid"],
    ["a skip out of bounds", { skip: -1_000_001 }, "invalid_argument", "invalid_request"],
    ["a broken topic filter", { device_id: "ab", topic: "a/#/b" }, "invalid_argument", "invalid_request"],
  ])("%s is refused", async (_, query, code, reason) => {
    await expect(messages(query)).rejects.toMatchObject({ code, reason });
  });
});

describe("queries over the wire", () => {
  test("an empty filter is no filter", async () => {
    expect(await messages({ filter: "" })).toHaveLength(6);
  });

  test("since is inclusive, until is exclusive", async () => {
    const since = "2026-01-01T00:00:01.000Z";
    const until = "2026-01-01T00:00:02.000Z";
    expect(await messages({ device_id: "ab", since, until })).toEqual(["ab temp/in"]);
    expect(await messages({ device_id: "ab", since })).toEqual(["ab temp/in", "ab state"]);
    expect(await messages({ device_id: "ab", until: since })).toEqual(["ab temp"]);
  });

  test("a record without the encoding member is text", async () => {
    const [record] = await callers[0].allRecords({ device_id: "ab", limit: 1 });
    expect(record).toEqual({
      id: 1,
      timestamp: "2026-01-01T00:00:00.000Z",
      device_id: "ab",
      topic: "db/ab/temp",
      message: "ab temp",
    });
  });

  test("the backlog is what the broker keeps", async () => {
    const [{ client, call }] = callers;
    const { promise, resolve } = Promise.withResolvers<void>();
    storing = promise;
    const pump = await broker.connectDevice("pump");
    for (const n of [1, 2, 3]) await pump.publish("db/pump/n", String(n), 1);
    expect(await client.readBacklog({}, call())).toEqual({ waiting: 3 });
    resolve();
    await eventually(async () => (await client.readBacklog({}, call())).waiting === 0);
    expect(await messages({ device_id: "pump" })).toEqual(["1", "2", "3"]);
  });

  test("two callers walk the same records at once", async () => {
    const walks = await Promise.all(callers.map((caller) => caller.allRecords({ limit: 5 })));
    expect(walks[0]).toHaveLength(5);
    expect(walks[1]).toEqual(walks[0]);
  });

  test("queries are answered while batches are stored, and batches stored while queries run", async () => {
    const filler = Array.from(
      { length: 1_000 },
      (_, at): DataMessage => ({
        delivery: null,
        timestamp: start,
        deviceId: "busy",
        topic: "db/busy/x",
        payload: Buffer.from(`${at}`.padEnd(400, "ab")),
        encoding: "text",
      }),
    );
    const queries = Promise.all([1, 2, 3, 4].map(() => messages({ filter: "~~" })));
    for (let batch = 0; batch < 5; batch++) {
      expect(await temp.store.append(filler)).toMatchObject({ stored: 1_000 });
    }
    expect(await queries).toEqual([[], [], [], []]);
    expect(await messages({ device_id: "busy", filter: "999", limit: null })).toHaveLength(5);
  });

  test("the largest records go out one or a few a page", async () => {
    const payload = Buffer.alloc(256 * 1024, 0xfe);
    const large = { delivery: null, timestamp: start, deviceId: "large", topic: "db/large/x", payload };
    await temp.store.append([1, 2, 3].map((): DataMessage => ({ ...large, encoding: "base64" })));
    const records = await callers[0].allRecords({ device_id: "large" });
    expect(records.map((record) => Buffer.from(record.message, "base64").equals(payload))).toEqual([
      true,
      true,
      true,
    ]);
  });

  test("what a device publishes as soon as it is admitted again is taken", async () => {
    const { client, call } = callers[0];
    for (let round = 0; round < 20; round++) {
      await client.purgeDevice({ device_id: "again" }, call());
      await client.admitDevice({ device_id: "again" }, call());
      const published = { timestamp: Date.now(), deviceId: "again", topic: "db/again/x" } as const;
      const messages: DataMessage[] = [
        { ...published, delivery: null, payload: Buffer.from("at once"), encoding: "text" },
      ];
      expect(await temp.store.append(messages)).toMatchObject({ stored: 1 });
    }
    await client.purgeDevice({ device_id: "again" }, call());
  });

  test("a purged device is gone for good, and admitting it twice is admitting it once", async () => {
    const { client, call } = callers[1];
    await client.purgeDevice({ device_id: "busy" }, call());
    await client.purgeDevice({ device_id: "busy" }, call());
    expect(await messages({ device_id: "busy" })).toEqual([]);
    await client.admitDevice({ device_id: "busy" }, call());
    await client.admitDevice({ device_id: "busy" }, call());
    expect(await messages({ device_id: "ab" })).toHaveLength(3);
  });
});

test("the backlog of a broker without the stream is said to be unknown", async () => {
  const [{ client, call }] = callers;
  await broker.devicesBus[natsConnection].request("$JS.API.STREAM.DELETE.$MQTT_msgs");
  await expect(client.readBacklog({}, call())).rejects.toMatchObject({
    code: "unavailable",
    reason: "backlog_unknown",
  });
});
