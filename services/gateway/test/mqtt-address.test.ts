import { MqttAddress } from "@devmesh/contracts/model/mqtt-address";
import { describe, expect, test } from "@jest/globals";
import { GatewayEnv } from "../src/env.ts";
import { mqttAddressOf } from "../src/routes/mqtt-address.ts";
import { startFixture } from "./gateway-fixture.ts";

describe("GET /mqtt", () => {
  test("answers a master key where devices connect, from MQTT_PUBLIC_URL", async () => {
    await using mesh = await startFixture({ env: { MQTT_PUBLIC_URL: "mqtts://broker.example.com:8884" } });
    const answer = await mesh.fetch("/api/v2/mqtt");
    expect(answer.status).toBe(200);
    expect(MqttAddress.parse(await answer.json())).toEqual({
      host: "broker.example.com",
      port: 8884,
      tls: true,
    });
    expect((await mesh.fetch("/api/v2/mqtt", { key: "device_key" })).status).toBe(403);
  });

  test("answers the default port on the gateway's host without it", async () => {
    await using mesh = await startFixture();
    const answer = await mesh.fetch("/api/v2/mqtt");
    expect(await answer.json()).toEqual({ host: null, port: 1883, tls: false });
  });
});

describe("MQTT_PUBLIC_URL", () => {
  test.each([
    ["mqtt://192.0.2.7", { host: "192.0.2.7", port: 1883, tls: false }],
    ["mqtts://[2001:db8::7]", { host: "2001:db8::7", port: 8883, tls: true }],
    ["mqtt://0.0.0.0:21883", { host: null, port: 21_883, tls: false }],
    ["mqtts://[::]:8884", { host: null, port: 8884, tls: true }],
  ])("%s is %j", (url, address) => {
    expect(mqttAddressOf(url)).toEqual(address);
  });

  test("of another protocol is refused", () => {
    for (const url of ["http://broker.example.com", "broker.example.com", "mqtt://"]) {
      expect(GatewayEnv.shape.MQTT_PUBLIC_URL.safeParse(url).success).toBe(false);
    }
  });
});
