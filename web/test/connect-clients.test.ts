import { describe, expect, test } from "@jest/globals";
import { clients, publishCommand } from "../src/features/devices/connect/clients.ts";

const pump = { id: "pump", token: "dt_1", host: "mqtt.example.com", port: 21_883, tls: false };

/** All that a client is to run or to write. */
const textOf = (name: string, connection = pump) =>
  clients
    .filter((client) => client.name === name)
    .flatMap(({ steps }) => steps(connection).map(({ text }) => text))
    .join("\n");

describe("the commands that connect as a device", () => {
  test("name the broker's host and port", () => {
    const login = "-h mqtt.example.com -p 21883 -i pump -u pump -P dt_1";
    expect(textOf("mosquitto")).toContain(`mosquitto_sub ${login} `);
    expect(publishCommand(pump)).toContain("-i pump:sensor -u pump");
  });

  test("go by TLS where the broker asks for it", () => {
    const broker = { ...pump, port: 8883, tls: true };
    expect(publishCommand(broker)).toContain("-p 8883 --tls-use-os-certs -i");
  });
});

describe("the examples of each client", () => {
  /** How each of them turns TLS on. */
  const tls = {
    mosquitto: "--tls-use-os-certs",
    "Python (paho)": "client.tls_set()",
    "Node (MQTT.js)": '"mqtts://mqtt.example.com:21883"',
    "ESP32 Arduino": "network.setCACert(CA)",
    "ESP-IDF": "crt_bundle_attach = esp_crt_bundle_attach",
    MicroPython: "ssl=context",
    "Mongoose OS": "mqtt.ssl_ca_cert=ca.pem",
  };

  test("are those of seven clients", () => {
    expect(clients.map(({ name }) => name)).toEqual(Object.keys(tls));
  });

  test.each(Object.entries(tls))("%s: are complete, with TLS and without", (name, secure) => {
    const plain = textOf(name);
    for (const part of ["pump", "dt_1", "mqtt.example.com", "21883", "db/pump/temperature", "celsius"])
      expect(plain).toContain(part);
    expect(plain).not.toContain(secure);
    expect(plain).not.toMatch(/ssl|tls|mqtts|undefined|secure/i);
    expect(textOf(name, { ...pump, tls: true })).toContain(secure);
    expect(plain.split("\n").filter((line) => line.length > 120)).toEqual([]);
  });

  test("let Mongoose OS run a call once, and take what is larger than its default buffer", () => {
    expect(textOf("Mongoose OS")).toContain("rpc.mqtt.sub_wc=false mqtt.recv_mbuf_limit=8192");
  });

  test("have an IPv6 address in brackets where a port follows it", () => {
    const local = { ...pump, host: "::1" };
    expect(textOf("mosquitto", local)).toContain("-h ::1 -p 21883");
    expect(textOf("Node (MQTT.js)", local)).toContain("mqtt://[::1]:21883");
    expect(textOf("Mongoose OS", local)).toContain("mqtt.server=[::1]:21883");
  });
});
