import { describe, expect, test } from "@jest/globals";
import { connectMqttDevice } from "../src/mqtt-device.ts";
import { startNatsServer } from "../src/nats-server.ts";

const config = `
accounts { DEVICES { jetstream: enabled, users: [
  { user: "pump-1", password: "right", permissions: { subscribe: { allow: ["pump-1.>", "pump-1"] } } }
  { user: "app", password: "right" }
] } }`;

describe("an MQTT device of a test", () => {
  test("subscribes, receives and is told what was refused", async () => {
    await using server = await startNatsServer({ mqtt: true, config });
    await using device = await connectMqttDevice({ url: server.mqttUrl, id: "pump-1", token: "right" });
    await using app = await connectMqttDevice({ url: server.mqttUrl, id: "app", token: "right" });
    expect(await device.subscribe("pump-1/x", 1)).toBe(1);
    expect(await device.subscribe("other/x", 1)).toBe(128);
    await app.publish("pump-1/x", { on: true }, 1);
    expect(await device.awaitMessage("pump-1/x")).toMatchObject({
      payload: '{"on":true}',
      qos: 1,
      retained: false,
    });
  });

  test("answers calls on the caller's reply topic", async () => {
    await using server = await startNatsServer({ mqtt: true, config });
    await using device = await connectMqttDevice({ url: server.mqttUrl, id: "pump-1", token: "right" });
    await using app = await connectMqttDevice({ url: server.mqttUrl, id: "app", token: "right" });
    await device.answerRpc(({ method, params }) => ({ result: { method, params } }));
    await app.subscribe("pump-1/r/1/rpc");
    await app.publish("pump-1/rpc", { id: 7, src: "pump-1/r/1", method: "sum", params: { a: 1 } });
    const reply = await app.awaitMessage("pump-1/r/1/rpc");
    expect(JSON.parse(reply.payload)).toEqual({ id: 7, result: { method: "sum", params: { a: 1 } } });
  });

  test("with a wrong token is refused", async () => {
    await using server = await startNatsServer({ mqtt: true, config });
    await expect(connectMqttDevice({ url: server.mqttUrl, id: "pump-1", token: "wrong" })).rejects.toThrow(
      /authorized|closed/i,
    );
  });
});
