import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { keys } from "@devmesh/contracts/keys";
import { calls } from "@devmesh/contracts/topology";
import { createClient } from "@devmesh/service-kit/rpc/client";
import { createCallContext } from "@devmesh/service-kit/rpc/context";
import { connectMqttDevice } from "@devmesh/testkit/mqtt-device";
import { type SpawnedService, spawnService } from "@devmesh/testkit/service-process";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { type KeysWorld, startWorld } from "./running-keys.ts";

let world: KeysWorld;
let running: SpawnedService | null = null;
beforeEach(async () => {
  world = await startWorld();
});
afterEach(async () => {
  await running?.end("SIGKILL");
  running = null;
  await world[Symbol.asyncDispose]();
});

function startProcess(change: Record<string, string> = {}): SpawnedService {
  running = spawnService("keys", {
    ...world.broker.environmentOf("keys"),
    STORE_URL: `sqlite:${join(world.folder, "keys.db")}`,
    KEY_ENCRYPTION_KEY: world.encryptionKey,
    AUTH_ISSUER_SEED: world.broker.issuerSeed,
    MASTER_KEY_FILE: join(world.folder, "master-key"),
    LOG_LEVEL: "trace",
    ...change,
  });
  return running;
}

async function call<T>(work: (call: ReturnType<typeof createCallContext>) => Promise<T>): Promise<T> {
  using context = createCallContext({ timeoutMs: 5_000 });
  return await work(context);
}

describe("the process", () => {
  test("serves under its broker user, logs no secret, and ends with 0 when stopped", async () => {
    const { ready, end, output } = startProcess();
    await ready;
    const gateway = createClient(
      await world.connect("gateway"),
      calls(keys, ["verify", "createKey", "invite"]),
    );
    const devices = createClient(await world.connect("devices"), calls(keys, ["issueCredentials"]));
    const masterKey = (await readFile(join(world.folder, "master-key"), "utf8")).trim();
    expect(await call((context) => gateway.verify({ key: masterKey }, context))).toMatchObject({
      principal: { kind: "master" },
    });
    const issued = await call((context) => devices.issueCredentials({ device_id: "pump-1" }, context));
    const created = await call((context) => gateway.createKey({ device_id: "pump-1" }, context));
    await call((context) => gateway.invite({ email: "ann@example.com" }, context));
    // Nobody answers for the bridge: the login is refused.
    const login = connectMqttDevice({ url: world.broker.mqttUrl, id: "pump-1", token: issued.token });
    await expect(login).rejects.toThrow(/Not authorized|closed/);
    expect(await end()).toBe(0);
    expect(output()).toContain('"msg":"stopped"');
    for (const secret of [
      masterKey,
      issued.token,
      issued.public_key,
      created.key ?? "",
      world.broker.issuerSeed,
    ]) {
      expect(output()).not.toContain(secret);
    }
    expect(output()).not.toContain(world.encryptionKey);
  });

  test("keeps what it answered through a kill", async () => {
    const first = startProcess();
    await first.ready;
    const devices = createClient(
      await world.connect("devices"),
      calls(keys, ["issueCredentials", "readCredentials"]),
    );
    const issued = await call((context) => devices.issueCredentials({ device_id: "pump-1" }, context));
    await first.end("SIGKILL");
    await startProcess().ready;
    expect(await call((context) => devices.readCredentials({ device_id: "pump-1" }, context))).toEqual(
      issued,
    );
  });

  test("ends with 1 and one sentence when another replica holds its SQLite store", async () => {
    const first = startProcess();
    await first.ready;
    const second = startProcess();
    expect(await second.ended).toBe(1);
    expect(second.output()).toContain("with SQLite a service runs as one replica");
    expect(await first.end()).toBe(0);
  });

  test("ends with 1 and one sentence when the encryption key is another's", async () => {
    const first = startProcess();
    await first.ready;
    await first.end();
    const second = startProcess({ KEY_ENCRYPTION_KEY: randomBytes(32).toString("hex") });
    expect(await second.ended).toBe(1);
    expect(second.output()).toContain("KEY_ENCRYPTION_KEY is not the key that this store was encrypted with");
  });
});
