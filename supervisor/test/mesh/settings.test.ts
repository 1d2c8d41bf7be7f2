import { resolve } from "node:path";
import { describe, expect, test } from "@jest/globals";
import { meshSettings } from "../../src/mesh/settings.ts";

describe("the supervisor's environment", () => {
  test("has the documented defaults, and an empty variable is one that is not set", () => {
    const settings = meshSettings({ PORT: "", SMTP_URL: "", DATA_DIR: "" });
    expect(settings).toMatchObject({
      host: "127.0.0.1",
      port: 8080,
      mqttPort: 1883,
      natsPort: 4222,
      dataDir: resolve(".data"),
      publicUrl: "http://127.0.0.1:8080",
      logLevel: "info",
    });
    expect(settings.smtpUrl).toBeUndefined();
  });

  test("PUBLIC_URL follows HOST and PORT unless it is set, and loses the slash at its end", () => {
    expect(meshSettings({ HOST: "::1", PORT: "9000" }).publicUrl).toBe("http://[::1]:9000");
    expect(meshSettings({ PUBLIC_URL: "https://mesh.example.com/" }).publicUrl).toBe(
      "https://mesh.example.com",
    );
  });

  test.each([
    ["by default", {}, true],
    [
      "on another loopback address",
      { HOST: "::1", PUBLIC_URL: "http://LOCALHOST:9000/x", TRUST_PROXY: "" },
      true,
    ],
    ["where the gateway listens for others", { HOST: "0.0.0.0", PUBLIC_URL: "http://127.0.0.1" }, false],
    ["where others reach it by a name", { PUBLIC_URL: "https://mesh.example.com" }, false],
    ["where the name only begins so", { PUBLIC_URL: "https://127.0.0.1.example.com" }, false],
    ["behind a proxy", { TRUST_PROXY: "1" }, false],
  ])(
    "receivers of webhooks on this machine are allowed while it alone reaches the mesh: %s",
    (_when, env, isAllowed) => {
      expect(meshSettings(env).webhookAllowNetworks).toBe(isAllowed ? "127.0.0.0/8,::1/128" : "");
      const given = { ...env, WEBHOOK_ALLOW_NETWORKS: "10.0.0.0/8" };
      expect(meshSettings(given).webhookAllowNetworks).toBe("10.0.0.0/8");
    },
  );

  test("OTA_PUBLIC_URL is an HTTP address, or none", () => {
    expect(meshSettings({}).otaPublicUrl).toBeUndefined();
    expect(meshSettings({ OTA_PUBLIC_URL: "http://ota.example.com" }).otaPublicUrl).toBe(
      "http://ota.example.com",
    );
    expect(() => meshSettings({ OTA_PUBLIC_URL: "ftp://ota.example.com" })).toThrow(/OTA_PUBLIC_URL/);
  });

  test("MQTT_PUBLIC_URL is an MQTT address, or none", () => {
    expect(meshSettings({ MQTT_PUBLIC_URL: "" }).mqttPublicUrl).toBeUndefined();
    expect(meshSettings({ MQTT_PUBLIC_URL: "mqtts://mqtt.example.com" }).mqttPublicUrl).toBe(
      "mqtts://mqtt.example.com",
    );
    expect(() => meshSettings({ MQTT_PUBLIC_URL: "https://mqtt.example.com" })).toThrow(/MQTT_PUBLIC_URL/);
  });

  test("that is wrong is told by the names of the variables, never by their values", () => {
    const wrong = { PORT: "eighty", MQTT_PORT: "70000", NATS_URL: "secret-of-somebody", LOG_LEVEL: "loud" };
    const told = (() => {
      try {
        meshSettings(wrong);
      } catch (error) {
        return (error as Error).message;
      }
      return "";
    })();
    expect(told).toBe(
      "The environment is not right: PORT: must be a port, 1 to 65535; MQTT_PORT: must be a port, 1 to 65535; " +
        "NATS_URL: must be nats://HOST:PORT, or several with commas between; " +
        "LOG_LEVEL: must be one of trace, debug, info, warn, error, fatal, silent.",
    );
  });

  test.each(["0", "65536", "-1", "80.5", "0x50", "1e3", " 80", "080", "99999999999999999999", "eighty"])(
    "a port is written as a number from 1 to 65535, not as %j",
    (port) => {
      for (const name of ["PORT", "MQTT_PORT", "NATS_PORT", "MQTT_WS_PORT"]) {
        expect(() => meshSettings({ [name]: port })).toThrow(
          `The environment is not right: ${name}: must be a port, 1 to 65535.`,
        );
      }
    },
  );

  test("the broker syncs ten times a second, every other duration, or before each acknowledgement", () => {
    expect(meshSettings({}).brokerSync).toBe("100ms");
    for (const brokerSync of ["500ms", "1s", "2m", "always"])
      expect(meshSettings({ BROKER_SYNC: brokerSync }).brokerSync).toBe(brokerSync);
    for (const wrong of ["0s", "1", "1h30", "never", "1s }"])
      expect(() => meshSettings({ BROKER_SYNC: wrong })).toThrow(
        "The environment is not right: BROKER_SYNC: must be a duration such as 500ms, 1s or 2m, or always.",
      );
  });

  test("names one or several servers that run already, and their MQTT listeners", () => {
    const settings = meshSettings({ NATS_URL: "nats://a:4222, tls://b", MQTT_URL: "mqtt://a,mqtt://b:1884" });
    expect(settings.natsUrls).toEqual(["nats://a:4222", "tls://b"]);
    expect(settings.mqttUrls).toEqual(["mqtt://a", "mqtt://b:1884"]);
    expect(meshSettings({}).natsUrls).toEqual([]);
    expect(() => meshSettings({ NATS_URL: "nats://a,http://b" })).toThrow(/NATS_URL/);
    expect(() => meshSettings({ MQTT_URL: "mqtt://a" })).toThrow(/NATS_URL/);
  });

  test("half a TLS set-up is refused", () => {
    expect(() => meshSettings({ MQTT_TLS_CERT: "cert.pem" })).toThrow(/go together/);
  });
});
