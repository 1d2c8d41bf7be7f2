import { mesh } from "@devmesh/contracts/mesh";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { startBroker, type TestBroker } from "../src/broker.ts";
import { isListening } from "../src/free-port.ts";
import { connectMqttDevice } from "../src/mqtt-device.ts";
import { connectNats } from "../src/nats-connection.ts";

describe("the mesh's broker", () => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await startBroker();
  });
  afterAll(() => broker?.stop());

  test("starts with the generated configuration, MQTT over WebSocket included", async () => {
    expect(await isListening(broker.mqttPort)).toBe(true);
    expect(await isListening(broker.websocketPort)).toBe(true);
    expect(broker.log()).not.toContain("[ERR]");
  });

  test("lets every service in as itself, and nobody with a wrong password", async () => {
    for (const service of Object.keys(mesh)) {
      const { NATS_PASSWORD: password = "" } = broker.environmentOf(service);
      const user = `${service}.mesh`;
      await using connection = await connectNats({ port: broker.port, user, password });
      await connection.flush();
      await expect(connectNats({ port: broker.port, user, password: "wrong" })).rejects.toThrow();
    }
  });

  test("refuses a device while nothing answers the callout", async () => {
    await expect(connectMqttDevice({ url: broker.mqttUrl, id: "pump-1", token: "dt_x" })).rejects.toThrow();
  });
});
