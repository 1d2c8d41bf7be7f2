import { type AddressInfo, connect, createServer } from "node:net";
import { eventually } from "@devmesh/testkit/eventually";
import { connectMqttDevice, type MqttDevice } from "@devmesh/testkit/mqtt-device";
import { startNatsServer, type TestNatsServer } from "@devmesh/testkit/nats-server";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { FunctionError } from "../src/function-error.ts";
import { startSimulatedDevice } from "../src/simulated-device.ts";

const config = `accounts { DEVICES { jetstream: enabled, users: [ { user: lamp, password: t }, { user: app, password: t } ] } }`;

describe("a simulated device", () => {
  let server: TestNatsServer;
  let caller: MqttDevice;
  beforeAll(async () => {
    server = await startNatsServer({ mqtt: true, config });
    caller = await connectMqttDevice({ url: server.mqttUrl, id: "app", token: "t" });
    for (const topic of ["lamp/r/1/rpc", "lamp/shadow/update", "db/lamp/#"]) await caller.subscribe(topic, 1);
  });
  afterAll(async () => {
    await caller.leave();
    await server.stop();
  });

  let lastId = 0;
  async function call(method: string, params?: unknown): Promise<unknown> {
    const id = ++lastId;
    await caller.publish("lamp/rpc", { id, src: "lamp/r/1", method, params });
    const { payload } = await caller.awaitMessage(
      (message) => message.topic === "lamp/r/1/rpc" && JSON.parse(message.payload).id === id,
    );
    return JSON.parse(payload);
  }

  test("answers calls, takes over what is desired, reports and publishes", async () => {
    const desired: unknown[] = [];
    let records = 0;
    const lamp = await startSimulatedDevice(
      { url: server.mqttUrl, id: "lamp", token: "t" },
      {
        app: "lamp",
        firmware: "1.2.0",
        reported: { app: { on: false, colour: { red: 1, green: 2 } } },
        functions: {
          twice: (params) => Number(params) * 2,
          fail: () => {
            throw new FunctionError(-5, "broken");
          },
        },
        telemetry: [{ topic: "temp", everyMs: 60_000, read: () => ({ celsius: 21 }) }],
        onDesired: (state) => desired.push(state),
        onRecord: () => records++,
      },
    );
    const first = await caller.awaitMessage("lamp/shadow/update");
    expect(JSON.parse(first.payload)).toEqual({
      state: { reported: { ota: { fw_version: "1.2.0" }, app: { on: false, colour: { red: 1, green: 2 } } } },
    });
    expect(await call("RPC.List")).toMatchObject({
      result: [
        "OTA.Begin",
        "OTA.Commit",
        "OTA.End",
        "OTA.GetBootState",
        "OTA.Update",
        "OTA.Write",
        "RPC.List",
        "Sys.GetInfo",
        "fail",
        "twice",
      ],
    });
    expect(await call("Sys.GetInfo")).toMatchObject({
      result: { id: "lamp", app: "lamp", fw_version: "1.2.0" },
    });
    expect(await call("twice", 21)).toMatchObject({ result: 42 });
    expect(await call("fail")).toMatchObject({ error: { code: -5, message: "broken" } });
    expect(await call("constructor")).toMatchObject({ error: { code: 404 } });
    expect(await caller.awaitMessage("db/lamp/temp")).toMatchObject({ payload: '{"celsius":21}', qos: 1 });
    await eventually(() => records === 1);

    await caller.publish(
      "lamp/shadow/delta",
      { state: { app: { on: true, colour: { red: null } } }, version: 2 },
      1,
    );
    const merged = { app: { on: true, colour: { green: 2 } } };
    const report = await caller.awaitMessage(
      ({ topic, payload }) => topic === "lamp/shadow/update" && payload.includes('"on":true'),
    );
    expect(JSON.parse(report.payload)).toEqual({ state: { reported: merged } });
    expect(lamp.reported).toEqual({ ota: { fw_version: "1.2.0" }, ...merged });
    expect(desired).toEqual([merged]);
    await caller.publish("lamp/rpc", "not JSON");
    expect(await call("twice", 1)).toMatchObject({ result: 2 });
    await lamp.stop();
  });

  test("counts no record that the broker has not acknowledged", async () => {
    let records = 0;
    let reads = 0;
    const stopped = await startNatsServer({ mqtt: true, config });
    const lamp = await startSimulatedDevice(
      { url: stopped.mqttUrl, id: "lamp", token: "t" },
      {
        app: "lamp",
        reported: {},
        functions: {},
        telemetry: [{ topic: "temp", everyMs: 10, read: () => ++reads }],
        onRecord: () => records++,
      },
    );
    await eventually(() => records > 0);
    await stopped.stop();
    await eventually(() => !lamp.connected);
    const [readBefore, acknowledged] = [reads, records];
    await eventually(() => reads > readBefore + 5);
    expect(records).toBe(acknowledged);
    await lamp.stop();
  });

  test("has subscribed to its calls once it reports what it has booted", async () => {
    const { port } = new URL(server.mqttUrl);
    let connections = 0;
    // After the boot what the device sends arrives late.
    const slowProxy = createServer((device) => {
      const lateMs = connections++ === 0 ? 0 : 200;
      const broker = connect(Number(port), "127.0.0.1");
      device.on("data", (bytes) => setTimeout(() => broker.write(bytes), lateMs));
      device.on("close", () => broker.destroy()).on("error", () => undefined);
      broker.on("close", () => device.destroy()).on("error", () => undefined);
      broker.pipe(device);
    });
    await new Promise<void>((resolve) => void slowProxy.listen(0, "127.0.0.1", resolve));
    const lamp = await startSimulatedDevice(
      {
        url: `mqtt://127.0.0.1:${(slowProxy.address() as AddressInfo).port}`,
        id: "lamp",
        token: "t",
      },
      {
        ...{ app: "lamp", firmware: "1", reported: {}, functions: {}, telemetry: [] },
        update: { bootMs: 50 },
      },
    );
    const image = Buffer.from("version=2\n");
    await call("OTA.Begin", { size: image.length });
    await call("OTA.Write", { data: image.toString("base64") });
    await call("OTA.End");
    await eventually(() => (lamp.reported.ota as { fw_version?: string }).fw_version === "2");
    expect(await call("Sys.GetInfo")).toMatchObject({ result: { fw_version: "2" } });
    await lamp.stop();
    slowProxy.close();
  });
});
