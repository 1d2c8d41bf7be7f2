import { describe, expect, test } from "@jest/globals";
import { brokerAddresses, proxyAdvice } from "../../src/mesh/broker-addresses.ts";
import { meshSettings } from "../../src/mesh/settings.ts";

const addressesOf = (env: NodeJS.ProcessEnv) => brokerAddresses(meshSettings(env));

describe("a broker of the mesh's own", () => {
  test("is reached by services and devices where it listens", () => {
    expect(addressesOf({ NATS_PORT: "4300", MQTT_PORT: "1900" })).toEqual({
      servers: [{ host: "127.0.0.1", port: 4300 }],
      natsUrl: "nats://127.0.0.1:4300",
      mqttUrl: "mqtt://127.0.0.1:1900",
      mqttPublicUrl: "mqtt://127.0.0.1:1900",
    });
  });

  test("listens for devices where MQTT_HOST says, else on HOST, and for services on the loopback unless NATS_HOST says more", () => {
    expect(addressesOf({ HOST: "192.0.2.1" })).toMatchObject({
      natsUrl: "nats://127.0.0.1:4222",
      mqttUrl: "mqtt://192.0.2.1:1883",
    });
    expect(addressesOf({ HOST: "0.0.0.0", MQTT_HOST: "127.0.0.1", NATS_HOST: "192.0.2.1" })).toMatchObject({
      natsUrl: "nats://192.0.2.1:4222",
      mqttUrl: "mqtt://127.0.0.1:1883",
      mqttPublicUrl: "mqtt://127.0.0.1:1883",
    });
  });

  test("that listens on all addresses is reached by the loopback, and by devices at any of them", () => {
    expect(addressesOf({ HOST: "0.0.0.0" })).toMatchObject({
      natsUrl: "nats://127.0.0.1:4222",
      mqttUrl: "mqtt://127.0.0.1:1883",
      mqttPublicUrl: "mqtt://0.0.0.0:1883",
    });
    expect(addressesOf({ HOST: "::" })).toMatchObject({
      mqttUrl: "mqtt://[::1]:1883",
      mqttPublicUrl: "mqtt://[::]:1883",
    });
  });

  test("speaks TLS with devices where it has a certificate", () => {
    const tls = { MQTT_TLS_CERT: "cert.pem", MQTT_TLS_KEY: "key.pem", MQTT_PORT: "8883" };
    expect(addressesOf(tls).mqttPublicUrl).toBe("mqtts://127.0.0.1:8883");
  });
});

test("a broker that strangers may reach without a proxy is said to need one", () => {
  const advised = (env: NodeJS.ProcessEnv) => proxyAdvice(meshSettings(env)) !== null;
  expect(proxyAdvice(meshSettings({ HOST: "0.0.0.0" }))).toContain("k8s/components/mqtt-proxy/haproxy.cfg");
  expect(advised({ MQTT_HOST: "192.0.2.1" })).toBe(true);
  for (const env of [
    {},
    { HOST: "::1" },
    { HOST: "0.0.0.0", MQTT_HOST: "127.0.0.1" },
    { NATS_URL: "nats://a" },
  ])
    expect(advised(env)).toBe(false);
});

describe("a broker that runs already", () => {
  test("is reached where NATS_URL says, by MQTT on its first server unless MQTT_URL says more", () => {
    expect(addressesOf({ NATS_URL: "nats://a,tls://b:4300" })).toEqual({
      servers: [
        { host: "a", port: 4222 },
        { host: "b", port: 4300 },
      ],
      natsUrl: "nats://a:4222,tls://b:4300",
      mqttUrl: "mqtt://a:1883",
      mqttPublicUrl: "mqtt://a:1883",
    });
    expect(addressesOf({ NATS_URL: "nats://a", MQTT_URL: "mqtts://b,mqtts://c" })).toMatchObject({
      mqttUrl: "mqtts://b,mqtts://c",
      mqttPublicUrl: "mqtts://b",
    });
  });
});

test("MQTT_PUBLIC_URL says where devices reach any broker, and services go on reaching it as before", () => {
  expect(addressesOf({ MQTT_PUBLIC_URL: "mqtts://mqtt.example.com" })).toMatchObject({
    mqttUrl: "mqtt://127.0.0.1:1883",
    mqttPublicUrl: "mqtts://mqtt.example.com",
  });
});
