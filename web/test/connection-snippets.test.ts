import { describe, expect, test } from "@jest/globals";
import { mqttPublishSnippet, mqttSnippet } from "../src/features/devices/shared/connection-snippets.ts";

const pump = { id: "pump", token: "dt_1", host: "mesh.example.com" };

describe("the commands that connect as a device", () => {
  test("name the broker's host and port", () => {
    const broker = { host: "mqtt.example.com", port: 21_883, tls: false };
    const login = "-h mqtt.example.com -p 21883 -i pump -u pump -P dt_1";
    expect(mqttSnippet({ ...pump, broker })).toContain(`mosquitto_sub ${login} `);
    expect(mqttPublishSnippet({ ...pump, broker })).toContain("-i pump:sensor -u pump");
  });

  test("take the host of the page where the broker has the same", () => {
    const broker = { host: null, port: 1883, tls: false };
    expect(mqttSnippet({ ...pump, broker })).toContain("-h mesh.example.com -p 1883 -i");
    expect(mqttSnippet({ ...pump, host: "[::1]", broker })).toContain("-h ::1 -p 1883 -i");
  });

  test("go by TLS where the broker asks for it", () => {
    const broker = { host: null, port: 8883, tls: true };
    expect(mqttSnippet({ ...pump, broker })).toContain("-p 8883 --tls-use-os-certs -i");
  });
});
