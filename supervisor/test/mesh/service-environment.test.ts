import { type ServiceName, serviceNames, storeOwners } from "@devmesh/contracts/mesh";
import { describe, expect, test } from "@jest/globals";
import { dataFolder } from "../../src/mesh/data-folder.ts";
import { serviceEnvironment } from "../../src/mesh/service-environment.ts";
import { meshSettings } from "../../src/mesh/settings.ts";

const passwords = Object.fromEntries(
  serviceNames.flatMap((name) => [name, `${name}.devices`]).map((user) => [user, `pw-${user}`]),
);
const supervisor = {
  MASTER_KEY: "mk_secret",
  SMTP_URL: "smtp://user:mail-secret@mail.example.com",
  OTA_PUBLIC_URL: "http://ota.example.com",
  STORE_URL: "",
  DATA_RETENTION_DAYS: "7",
  KEY_ENCRYPTION_KEY: "",
};

function environmentOf(service: ServiceName, more: NodeJS.ProcessEnv = {}) {
  const env = { ...supervisor, ...more };
  return serviceEnvironment(service, {
    settings: meshSettings({ ...env, DATA_DIR: "/data" }),
    folder: dataFolder("/data"),
    installation: {
      created_at: "2026-01-01T00:00:00.000Z",
      passwords,
      issuer: { seed: "SEED", public_key: "A" },
      key_encryption_key: "S0VL",
    },
    natsUrl: "nats://127.0.0.1:4222",
    mqttUrl: "mqtt://127.0.0.1:1883",
    mqttPublicUrl: "mqtt://broker.example.com:1883",
    mqttTlsCert: undefined,
    inherited: env,
  });
}

describe("a service's environment", () => {
  test("holds its own broker passwords and nobody else's", () => {
    for (const service of serviceNames) {
      const text = JSON.stringify(environmentOf(service));
      for (const other of serviceNames.filter((name) => name !== service))
        expect(text).not.toContain(`"pw-${other}"`);
      expect(environmentOf(service)).toMatchObject({ NATS_USER: service, NATS_PASSWORD: `pw-${service}` });
    }
  });

  test.each([
    ["MASTER_KEY", ["keys"]],
    ["KEY_ENCRYPTION_KEY", ["keys"]],
    ["AUTH_ISSUER_SEED", ["keys"]],
    ["SMTP_URL", ["mailer"]],
    ["OUTBOX_DIR", ["mailer"]],
    ["MQTT_URL", ["rpc-bridge"]],
    ["MASTER_KEY_FILE", ["gateway", "keys"]],
    ["PORT", ["gateway"]],
    ["MQTT_PUBLIC_URL", ["gateway"]],
    ["OTA_PUBLIC_URL", ["jobs"]],
    ["STORE_URL", storeOwners],
  ] as [string, ServiceName[]][])("has %s only in %j", (variable, owners) => {
    expect(serviceNames.filter((name) => environmentOf(name)[variable] !== undefined)).toEqual(owners);
  });

  test("has a store of its own: a file of the data folder, of the folder that STORE_URL names, or a database of the server", () => {
    expect(environmentOf("data").STORE_URL).toBe("sqlite:/data/data.db");
    expect(environmentOf("data", { STORE_URL: "sqlite:/fast" }).STORE_URL).toBe("sqlite:/fast/data.db");
    expect(environmentOf("keys", { STORE_URL: "mongodb://u:p@a:1,b/x?tls=true" }).STORE_URL).toBe(
      "mongodb://u:p@a:1,b/x_keys?tls=true",
    );
    expect(environmentOf("data", { STORE_URL: "mongodb://db" }).STORE_URL).toBe("mongodb://db/devmesh_data");
  });

  test("inherits what the supervisor does not hand out itself", () => {
    expect(environmentOf("data").DATA_RETENTION_DAYS).toBe("7");
  });
});
