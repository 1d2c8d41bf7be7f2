import { randomBytes } from "node:crypto";
import { chmod, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { readEnv } from "@devmesh/service-kit/process/env";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { createSecret } from "../src/credentials/secret.ts";
import { KeysEnv } from "../src/env.ts";
import { type KeysWorld, type RunningKeys, startKeysIn, startWorld } from "./running-keys.ts";

let world: KeysWorld;
beforeEach(async () => {
  world = await startWorld();
});
afterEach(async () => {
  await world[Symbol.asyncDispose]();
});

const master = { principal: { kind: "master" } };

async function masterKeyIn(service: RunningKeys): Promise<string> {
  return (await readFile(service.masterKeyFile, "utf8")).trim();
}

describe("at its first start the service", () => {
  test("makes a master key, writes it alone into a file only the owner reads, and keeps it", async () => {
    let written: string;
    {
      await using service = await startKeysIn(world);
      written = await masterKeyIn(service);
      expect(written).toMatch(/^mk_[0-9A-Za-z]{32}$/);
      expect((await stat(service.masterKeyFile)).mode & 0o777).toBe(0o600);
      expect(await service.call("verify", { key: written })).toMatchObject(master);
    }
    await using again = await startKeysIn(world);
    expect(await masterKeyIn(again)).toBe(written);
    expect((await again.call("listKeys", {})).items).toHaveLength(1);
  });

  test("takes a preset master key, and adds one preset later", async () => {
    const presets = [createSecret("master"), createSecret("master")] as const;
    for (const [at, preset] of presets.entries()) {
      await using service = await startKeysIn(world, { env: { MASTER_KEY: preset } });
      expect(await service.call("verify", { key: preset })).toMatchObject(master);
      expect(await masterKeyIn(service)).toBe(preset);
      expect((await service.call("listKeys", {})).items).toHaveLength(at + 1);
    }
  });
});

describe("at a later start the service", () => {
  test("writes the master key again where the file is missing, stale, or too open", async () => {
    let first: string;
    {
      await using service = await startKeysIn(world);
      first = await masterKeyIn(service);
      await rm(service.masterKeyFile);
    }
    {
      await using service = await startKeysIn(world);
      expect(await masterKeyIn(service)).toBe(first);
      await chmod(service.masterKeyFile, 0o644);
    }
    {
      await using service = await startKeysIn(world);
      expect((await stat(service.masterKeyFile)).mode & 0o777).toBe(0o600);
      const { key } = await service.call("createKey", {});
      const { key_id } = await service.call("verify", { key: first });
      await service.call("deleteKey", { id: key_id });
      first = key ?? "";
    }
    await using service = await startKeysIn(world);
    expect(await masterKeyIn(service)).toBe(first);
  });

  test("makes another master key when none is valid any more", async () => {
    let clock: RunningKeys["clock"];
    {
      await using service = await startKeysIn(world);
      clock = service.clock;
      const expires_at = new Date(clock.now().getTime() + 1_000).toISOString();
      await service.call("createKey", { expires_at });
      await service.call("deleteKey", { id: (await service.call("listKeys", {})).items[0]?.id ?? "" });
      await clock.advance(1_000);
    }
    await using service = await startKeysIn(world, { clock });
    expect(await service.call("verify", { key: await masterKeyIn(service) })).toMatchObject(master);
  });

  test("refuses another encryption key in one sentence, and starts with the right one", async () => {
    await (await startKeysIn(world))[Symbol.asyncDispose]();
    const other = { KEY_ENCRYPTION_KEY: randomBytes(32).toString("hex") };
    await expect(startKeysIn(world, { env: other })).rejects.toThrow(
      /^KEY_ENCRYPTION_KEY is not the key that this store was encrypted with/,
    );
    await (await startKeysIn(world))[Symbol.asyncDispose]();
  });

  test("says which file it cannot write", async () => {
    const blocked = join(world.folder, "file");
    await writeFile(blocked, "");
    await expect(
      startKeysIn(world, { env: { MASTER_KEY_FILE: join(blocked, "master-key") } }),
    ).rejects.toThrow(/^MASTER_KEY_FILE .* cannot be written \(ENOTDIR\)$/);
  });
});

test("no secret is in clear in any file of the store or of the broker", async () => {
  const secrets: string[] = [];
  {
    await using service = await startKeysIn(world);
    secrets.push(await masterKeyIn(service));
    secrets.push(...Object.values(await service.call("issueCredentials", { device_id: "pump-1" })));
    secrets.push(...Object.values(await service.call("rotateToken", { device_id: "pump-1" })));
    secrets.push(...Object.values(await service.call("rotatePublicKey", { device_id: "pump-1" })));
    for (const input of [{}, { device_id: "pump-1" }]) {
      const { id, key } = await service.call("createKey", input);
      secrets.push(key ?? "");
      await service.call("verify", { key: key ?? "" });
      await service.call("deleteKey", { id });
    }
    await service.call("invite", { email: "ann@example.com" });
    const customer_id = (await service.call("listCustomers", {})).items[0]?.id ?? "";
    const { token, confirmation } = await service.call("readInvitation", { customer_id });
    secrets.push(token, confirmation);
    await service.call("deleteCustomer", { customer_id });
    await rm(service.masterKeyFile);
    await search();
  }
  await search();

  async function search() {
    const files = [...(await filesBelow(world.folder)), ...(await filesBelow(world.broker.storeDir))];
    expect(files.some((file) => file.endsWith("keys.db"))).toBe(true);
    expect(secrets).toHaveLength(9);
    for (const file of files) {
      const bytes = await readFile(file);
      for (const secret of secrets) expect([file, bytes.includes(secret.slice(3))]).toEqual([file, false]);
    }
  }
});

async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

describe("the environment", () => {
  const right = {
    STORE_URL: "sqlite:x",
    KEY_ENCRYPTION_KEY: randomBytes(32).toString("base64"),
    AUTH_ISSUER_SEED: `SA${"A".repeat(56)}`,
  };

  test("takes an encryption key as base64, with and without padding and URL-safe, or as hex", () => {
    const bytes = randomBytes(32);
    const forms = [bytes.toString("base64"), bytes.toString("base64url"), bytes.toString("hex")];
    for (const KEY_ENCRYPTION_KEY of forms) {
      const reading = readEnv(KeysEnv, { ...right, KEY_ENCRYPTION_KEY });
      expect("env" in reading && Buffer.from(reading.env.KEY_ENCRYPTION_KEY).equals(bytes)).toBe(true);
    }
  });

  test("refuses wrong secrets with one sentence that does not repeat them", () => {
    const wrong = [
      ["KEY_ENCRYPTION_KEY", randomBytes(31).toString("base64")],
      ["KEY_ENCRYPTION_KEY", "0".repeat(64)],
      ["KEY_ENCRYPTION_KEY", "change-me"],
      ["AUTH_ISSUER_SEED", `SU${"A".repeat(56)}`],
      ["MASTER_KEY", "secret"],
      ["MASTER_KEY", createSecret("device")],
    ] as const;
    for (const [name, value] of wrong) {
      const reading = readEnv(KeysEnv, { ...right, [name]: value });
      if ("env" in reading) throw new Error(`${name} was accepted`);
      expect(reading.problems).toHaveLength(1);
      expect(reading.problems[0]).toMatch(new RegExp(`^${name} is wrong: `));
      expect(reading.problems[0]).not.toContain(value);
    }
  });
});
