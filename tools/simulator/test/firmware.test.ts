import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { eventually } from "@devmesh/testkit/eventually";
import { connectMqttDevice, type MqttDevice } from "@devmesh/testkit/mqtt-device";
import { startNatsServer, type TestNatsServer } from "@devmesh/testkit/nats-server";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { digestOf, versionOf } from "../src/firmware/image.ts";
import { behaviourInMix, type UpdateBehaviour } from "../src/firmware/update-behaviour.ts";
import { type SimulatedDevice, startSimulatedDevice } from "../src/simulated-device.ts";

const config = `accounts { DEVICES { jetstream: enabled, users: [ { user: lamp, password: t }, { user: app, password: t } ] } }`;
const image = Buffer.concat([Buffer.from("version=1.4.0\n"), Buffer.alloc(20_000, 7)]);

test("the version of an image is in its first line, else it is the beginning of its SHA-256", () => {
  expect(versionOf(image)).toBe("1.4.0");
  expect(versionOf(Buffer.from("version=1.2.16-idf\r\nrest"))).toBe("1.2.16-idf");
  expect(versionOf(Buffer.from("version=2"))).toBe("2");
  for (const other of [Buffer.from("x\nversion=1\n"), Buffer.from("version=\n"), Buffer.from([0, 255])])
    expect(versionOf(other)).toBe(digestOf(other).slice(0, 12));
});

test("a mixed fleet has slow devices, drops, roll-backs, other versions, and both kinds of pushes", () => {
  const mix = Array.from({ length: 40 }, (_, at) => behaviourInMix(at + 1));
  const count = (has: (one: UpdateBehaviour) => unknown) => mix.filter(has).length;
  expect(count(({ pieceMs }) => pieceMs)).toBe(4);
  expect(count(({ drops }) => drops)).toBe(8);
  expect(count(({ drops, takesOffset }) => drops && takesOffset)).toBe(4);
  expect(count(({ rollsBack }) => rollsBack)).toBe(4);
  expect(count(({ reportsOther }) => reportsOther)).toBe(4);
  expect(count(({ takesOffset }) => takesOffset)).toBe(20);
});

describe("a simulated device that gets new firmware", () => {
  let server: TestNatsServer;
  let caller: MqttDevice;
  let files: Server;
  /** Ranges that were asked for, and how many requests fail before one is answered. */
  let ranges: string[] = [];
  let failures = 0;
  let lamp: SimulatedDevice | undefined;
  beforeAll(async () => {
    server = await startNatsServer({ mqtt: true, config });
    caller = await connectMqttDevice({ url: server.mqttUrl, id: "app", token: "t" });
    for (const topic of ["lamp/r/1/rpc", "lamp/shadow/update"]) await caller.subscribe(topic, 1);
    files = createServer(({ headers }, response) => {
      const [, first, last] = /bytes=(\d+)-(\d+)/.exec(headers.range ?? "") ?? [];
      ranges.push(String(headers.range));
      if (failures-- > 0) return void response.destroy();
      const [start, end] = [Number(first), Math.min(Number(last) + 1, image.length)];
      response.writeHead(206, {
        "Content-Range": `bytes ${start}-${end - 1}/${image.length}`,
        ETag: `"${digestOf(image)}"`,
      });
      response.end(image.subarray(start, end));
    });
    await new Promise<void>((resolve) => void files.listen(0, "127.0.0.1", resolve));
  });
  afterAll(async () => {
    files.close();
    await caller.leave();
    await server.stop();
  });

  /** Runs one lamp, which is quick by default. */
  async function withLamp(update: UpdateBehaviour, work: () => Promise<void>): Promise<void> {
    ranges = [];
    failures = 0;
    caller.forget();
    lamp = await startSimulatedDevice(
      { url: server.mqttUrl, id: "lamp", token: "t" },
      {
        ...{ app: "lamp", firmware: "1.0.0", reported: {}, functions: {}, telemetry: [] },
        update: { pieceMs: 0, bootMs: 50, ...update },
      },
    );
    try {
      await work();
    } finally {
      await lamp.stop();
    }
  }
  let lastId = 0;
  async function call(method: string, params?: unknown) {
    const id = ++lastId;
    await caller.publish("lamp/rpc", { id, src: "lamp/r/1", method, params });
    const { payload } = await caller.awaitMessage(
      (message) => message.topic === "lamp/r/1/rpc" && JSON.parse(message.payload).id === id,
    );
    const { id: _, ...answer } = JSON.parse(payload);
    return answer;
  }
  const ota = () => lamp?.reported.ota as Record<string, unknown>;
  const runs = (version: string) => eventually(() => ota().fw_version === version && lamp?.connected);
  const url = () => `http://127.0.0.1:${(files.address() as AddressInfo).port}/image`;
  const push = async (piece = 4_000, from = 0) => {
    for (let at = from; at < image.length; at += piece) {
      const data = image.subarray(at, at + piece).toString("base64");
      expect(await call("OTA.Write", { data })).toMatchObject({ result: { queued: expect.any(Number) } });
    }
  };

  test("by a URL fetches it in ranges, also over failures, boots, and reports the version", () =>
    withLamp({}, async () => {
      failures = 1;
      expect(await call("OTA.Update", { url: url() })).toEqual({ result: true });
      await runs("1.4.0");
      expect(ranges.length).toBeGreaterThan(15);
      expect(ranges.slice(0, 2)).toEqual(["bytes=0-1023", "bytes=0-1023"]);
      expect(await call("Sys.GetInfo")).toMatchObject({ result: { fw_version: "1.4.0" } });
    }));

  test("that is not committed in time goes back, and one that is committed stays", () =>
    withLamp({}, async () => {
      await call("OTA.Update", { url: url(), commit_timeout: 0.5 });
      await caller.awaitMessage(({ payload }) => payload.includes('"fw_version":"1.4.0"'));
      await runs("1.0.0");
      await call("OTA.Update", { url: url(), commit_timeout: 8 });
      await runs("1.4.0");
      expect(await call("OTA.GetBootState")).toEqual({ result: { is_committed: false } });
      expect(await call("OTA.Commit")).toEqual({ result: true });
      expect(await call("OTA.GetBootState")).toEqual({ result: { is_committed: true } });
      await sleep(8_500);
      expect(ota().fw_version).toBe("1.4.0");
    }));

  test("by its shadow reports tenths and never the URL", () =>
    withLamp({}, async () => {
      const desired = {
        url: url(),
        version: "1.4.0",
        size: image.length,
        sha256: digestOf(image),
        execution: "e",
      };
      const delta = { state: { ota: desired }, version: 2 };
      await caller.publish("lamp/shadow/delta", delta, 1);
      await caller.publish("lamp/shadow/delta", delta, 1);
      const half = await caller.awaitMessage(({ payload }) => payload.includes('"percent":50'));
      expect(JSON.parse(half.payload)).toEqual({ state: { reported: { ota: { percent: 50 } } } });
      await runs("1.4.0");
      expect(ranges.filter((range) => range === "bytes=0-1023")).toHaveLength(1);
      expect(JSON.stringify(lamp?.reported)).not.toContain(url());
    }));

  test("that is damaged keeps the old version and says so", () =>
    withLamp({}, async () => {
      const desired = { url: url(), sha256: "0".repeat(64) };
      await caller.publish("lamp/shadow/delta", { state: { ota: desired }, version: 2 }, 1);
      await eventually(() => ota().code === 500);
      expect(ota()).toMatchObject({ fw_version: "1.0.0", message: "the image is damaged" });
    }));

  test("by a push takes pieces, and refuses half an image", () =>
    withLamp({}, async () => {
      expect(await call("OTA.Write", { data: "AA==" })).toMatchObject({
        error: { message: "call OTA.Begin" },
      });
      expect(await call("OTA.Begin", { size: image.length })).toEqual({ result: true });
      expect(await call("OTA.Begin", { size: image.length })).toMatchObject({
        error: { code: 500, message: "OTA already in progress" },
      });
      expect(await call("OTA.End", {})).toMatchObject({ error: { code: 500 } });
      expect(await call("OTA.Begin", { size: image.length })).toEqual({ result: true });
      await push();
      expect(await call("OTA.End", {})).toEqual({ result: true });
      await runs("1.4.0");
    }));

  test("by a push with offsets goes on after its connection was lost", () =>
    withLamp({ drops: true, takesOffset: true }, async () => {
      expect(await call("OTA.Begin", { size: image.length })).toEqual({ result: { offset: 0 } });
      const first = image.subarray(0, 12_000).toString("base64");
      await caller.publish("lamp/rpc", {
        id: 0,
        src: "lamp/r/1",
        method: "OTA.Write",
        params: { offset: 0, data: first },
      });
      await eventually(() => !lamp?.connected);
      await eventually(() => lamp?.connected);
      // What was sent while it was away is lost, as for a device.
      await eventually(async () =>
        Promise.race([call("RPC.List").then(() => true), sleep(500).then(() => false)]),
      );
      expect(await call("OTA.Begin", { size: image.length })).toEqual({ result: { offset: 12_000 } });
      await push(4_000, 12_000);
      await call("OTA.End", {});
      await runs("1.4.0");
    }));

  test.each([
    ["its boot loader refuses", { rollsBack: true }, "1.0.0"],
    ["reports another version", { reportsOther: true }, "1.4.0-other"],
    ["loses its connection half-way", { drops: true }, "1.4.0"],
  ])("that %s boots accordingly", (_, update, version) =>
    withLamp(update, async () => {
      const boots: boolean[] = [];
      const watching = setInterval(() => boots.push(lamp?.connected ?? false), 5);
      await caller.publish("lamp/rpc", {
        id: 0,
        src: "lamp/r/1",
        method: "OTA.Update",
        params: { url: url() },
      });
      await eventually(() => boots.includes(false));
      await runs(version);
      clearInterval(watching);
    }),
  );
});
