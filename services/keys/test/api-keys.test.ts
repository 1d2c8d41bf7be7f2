import { secretPattern } from "@devmesh/contracts/model/api-key";
import { describe, expect, test } from "@jest/globals";
import { openSqliteKeyStore } from "../src/store/key-store.sqlite.ts";
import { runForEachTest, startKeysIn } from "./running-keys.ts";

const run = runForEachTest();

const invalid = { code: "unauthenticated", reason: "key_invalid" };

async function createDeviceKey(deviceId: string): Promise<{ id: string; key: string }> {
  const { id, key } = await run.service.call("createKey", { device_id: deviceId });
  if (key === null) throw new Error("a new key is shown");
  return { id, key };
}

describe("API keys", () => {
  test("no body makes a master key, a device id a device key", async () => {
    await run.service.call("issueCredentials", { device_id: "pump-1" });
    const master = await run.service.call("createKey", {});
    expect(master).toMatchObject({
      access: "full",
      device_id: null,
      name: null,
      last_used: null,
      expires_at: null,
    });
    expect(master.key).toMatch(secretPattern);
    expect(await run.service.call("verify", { key: master.key ?? "" })).toEqual({
      key_id: master.id,
      principal: { kind: "master" },
      expires_at: null,
    });
    const device = await run.service.call("createKey", {
      access: "device",
      device_id: "pump-1",
      name: "Ann's",
    });
    expect(device).toMatchObject({ access: "device", device_id: "pump-1", name: "Ann's" });
    expect(device.key).toMatch(/^dk_/);
    const verified = await run.service.call("verify", { key: device.key ?? "" });
    expect(verified.principal).toEqual({ kind: "device_key", device_id: "pump-1" });
    expect(verified.name).toBe("Ann's");
  });

  test("a contradictory, an expired and a stray request for a key are refused", async () => {
    await run.service.call("issueCredentials", { device_id: "pump-1" });
    const past = run.service.clock.now().toISOString();
    await expect(run.service.call("createKey", { access: "device" })).rejects.toMatchObject({
      reason: "key_contradictory",
    });
    await expect(
      run.service.call("createKey", { access: "full", device_id: "pump-1" }),
    ).rejects.toMatchObject({
      reason: "key_contradictory",
    });
    await expect(run.service.call("createKey", { expires_at: past })).rejects.toMatchObject({
      reason: "expiry_past",
      details: [{ pointer: "/expires_at", detail: "is in the past" }],
    });
    await expect(run.service.call("createKey", { device_id: "nobody" })).rejects.toMatchObject({
      code: "not_found",
      reason: "device_not_found",
    });
  });

  test("an expiry is checked on each use", async () => {
    const expiresAt = new Date(run.service.clock.now().getTime() + 60_000).toISOString();
    const { key } = await run.service.call("createKey", { expires_at: expiresAt });
    expect((await run.service.call("verify", { key: key ?? "" })).expires_at).toBe(expiresAt);
    await run.service.clock.advance(59_999);
    await run.service.call("verify", { key: key ?? "" });
    await run.service.clock.advance(1);
    await expect(run.service.call("verify", { key: key ?? "" })).rejects.toMatchObject(invalid);
  });

  test("a list is oldest first, in pages, with the secrets", async () => {
    const first = (await run.service.call("listKeys", {})).items[0];
    const made = [];
    for (let at = 0; at < 5; at++) made.push(await run.service.call("createKey", { name: String(at) }));
    const all = await run.service.call("listKeys", {});
    expect(all).toEqual({ next: null, items: [first, ...made] });
    expect(await run.service.call("countKeys", {})).toEqual({ count: 6 });
    const page = await run.service.call("listKeys", { limit: 4 });
    expect(page.items).toEqual(all.items.slice(0, 4));
    expect(await run.service.call("listKeys", { limit: 4, after: page.next ?? "" })).toEqual({
      next: null,
      items: all.items.slice(4),
    });
    await expect(run.service.call("listKeys", { after: "x" })).rejects.toMatchObject({
      reason: "cursor_invalid",
    });
  });

  test("a deleted key is invalid and is announced by its id", async () => {
    const { id, key } = await run.service.call("createKey", {});
    await run.service.call("deleteKey", { id });
    await expect(run.service.call("verify", { key: key ?? "" })).rejects.toMatchObject(invalid);
    await expect(run.service.call("deleteKey", { id })).rejects.toMatchObject({ reason: "key_not_found" });
    await run.service.received();
    expect(run.service.revoked).toEqual([id]);
  });

  test("of all master keys deleted at once, one stays", async () => {
    for (let at = 0; at < 6; at++) await run.service.call("createKey", {});
    const { items } = await run.service.call("listKeys", {});
    const endings = await Promise.allSettled(items.map(({ id }) => run.service.call("deleteKey", { id })));
    const refused = endings.filter((ending) => ending.status === "rejected");
    expect(refused).toHaveLength(1);
    expect(refused[0]?.reason).toMatchObject({ code: "conflict", reason: "last_master_key" });
    expect((await run.service.call("listKeys", {})).items).toHaveLength(1);
  });

  test("an expired master key does not let the last valid one go", async () => {
    const expires_at = new Date(run.service.clock.now().getTime() + 1_000).toISOString();
    await run.service.call("createKey", { expires_at });
    await run.service.clock.advance(1_000);
    const [valid, expired] = (await run.service.call("listKeys", {})).items;
    await expect(run.service.call("deleteKey", { id: valid?.id ?? "" })).rejects.toMatchObject({
      reason: "last_master_key",
    });
    await run.service.call("deleteKey", { id: expired?.id ?? "" });
  });

  test("the time of last use has one-minute resolution, shows at once and outlives a stop", async () => {
    await run.service.clock.advance(90_000);
    const { id, key } = await run.service.call("createKey", {});
    const lastUse = async () =>
      (await run.service.call("listKeys", {})).items.find((one) => one.id === id)?.last_used;
    for (let at = 0; at < 3; at++) await run.service.call("verify", { key: key ?? "" });
    expect(await lastUse()).toBe("2026-01-01T00:01:00.000Z");
    await run.service[Symbol.asyncDispose]();
    run.service = await startKeysIn(run.world, { clock: run.service.clock });
    expect(await lastUse()).toBe("2026-01-01T00:01:00.000Z");
  });

  test("texts that are no key, unknown keys and device tokens are invalid", async () => {
    const { token } = await run.service.call("issueCredentials", { device_id: "pump-1" });
    const unknown = ["mk", "dk", "ck", "pk", "dt"].map((prefix) => `${prefix}_${"0".repeat(32)}`);
    for (const key of [token, ...unknown, "", "mk_", "'", "x".repeat(100_000), "mk_\u0000"]) {
      await expect(run.service.call("verify", { key })).rejects.toMatchObject(invalid);
    }
  });

  test("shown once only, they are null in lists", async () => {
    await run.service[Symbol.asyncDispose]();
    run.service = await startKeysIn(run.world, { env: { KEYS_REVEAL: "once" } });
    const made = await run.service.call("createKey", {});
    expect(made.key).toMatch(/^mk_/);
    expect((await run.service.call("listKeys", {})).items.map(({ key }) => key)).toEqual([null, null]);
  });
});

describe("device credentials", () => {
  test("are issued, read again, and the same when the issue is repeated", async () => {
    const issued = await run.service.call("issueCredentials", { device_id: "pump-1" });
    expect(issued.token).toMatch(/^dt_/);
    expect(issued.public_key).toMatch(/^pk_/);
    expect(await run.service.call("readCredentials", { device_id: "pump-1" })).toEqual(issued);
    expect(await run.service.call("issueCredentials", { device_id: "pump-1" })).toEqual(issued);
    expect(await run.service.call("verify", { key: issued.public_key })).toMatchObject({
      principal: { kind: "public_key", device_id: "pump-1" },
    });
    await expect(run.service.call("readCredentials", { device_id: "x" })).rejects.toMatchObject({
      reason: "device_not_found",
    });
  });

  test("are rotated one by one; the old public key is dead and announced", async () => {
    const old = await run.service.call("issueCredentials", { device_id: "pump-1" });
    const { key_id } = await run.service.call("verify", { key: old.public_key });
    const { token } = await run.service.call("rotateToken", { device_id: "pump-1" });
    const { public_key } = await run.service.call("rotatePublicKey", { device_id: "pump-1" });
    expect(await run.service.call("readCredentials", { device_id: "pump-1" })).toEqual({ token, public_key });
    expect(token).not.toBe(old.token);
    await expect(run.service.call("verify", { key: old.public_key })).rejects.toMatchObject(invalid);
    await run.service.call("verify", { key: public_key });
    await run.service.received();
    expect(run.service.revoked).toContain(key_id);
    for (const method of ["rotateToken", "rotatePublicKey"] as const) {
      await expect(run.service.call(method, { device_id: "x" })).rejects.toMatchObject({
        reason: "device_not_found",
      });
    }
  });

  test("revoked, they end the public key and the device keys, also for a later device of that id", async () => {
    const issued = await run.service.call("issueCredentials", { device_id: "pump-1" });
    const deviceKey = await createDeviceKey("pump-1");
    await run.service.call("revokeDevice", { device_id: "pump-1" });
    const dead = [issued.public_key, deviceKey.key];
    for (const key of dead) await expect(run.service.call("verify", { key })).rejects.toMatchObject(invalid);
    await run.service.received();
    expect(run.service.revoked).toContain(deviceKey.id);
    await expect(run.service.call("createKey", { device_id: "pump-1" })).rejects.toMatchObject({
      reason: "device_not_found",
    });
    await expect(run.service.call("issueCredentials", { device_id: "pump-1" })).rejects.toMatchObject({
      code: "conflict",
      reason: "credentials_revoked",
    });

    await run.service.call("forgetDevice", { device_id: "pump-1" });
    const next = await run.service.call("issueCredentials", { device_id: "pump-1" });
    expect(next.token).not.toBe(issued.token);
    for (const key of dead) await expect(run.service.call("verify", { key })).rejects.toMatchObject(invalid);
    expect((await run.service.call("listKeys", {})).items.map(({ id }) => id)).not.toContain(deviceKey.id);
  });

  test("revoked and issued again, they do not revive a device key", async () => {
    await run.service.call("issueCredentials", { device_id: "pump-1" });
    const [deviceKey, other] = [await createDeviceKey("pump-1"), await createDeviceKey("pump-1")];
    // As if a crash came between: what `revokeDevice` did to the credentials happened, what it did to the keys did not.
    await run.service[Symbol.asyncDispose]();
    const store = openSqliteKeyStore(run.service.storePath);
    const { signal } = new AbortController();
    await store.credentials.revoke("pump-1", signal);
    await store.credentials.forget("pump-1", signal);
    await store.close();
    run.service = await startKeysIn(run.world);
    await run.service.call("issueCredentials", { device_id: "pump-1" });
    for (const { key } of [deviceKey, other]) {
      await expect(run.service.call("verify", { key })).rejects.toMatchObject(invalid);
    }
    expect(
      (await run.service.call("listKeys", {})).items.filter(({ access }) => access === "device"),
    ).toEqual([]);
  });

  test("a revocation that is repeated announces the same again", async () => {
    const { public_key } = await run.service.call("issueCredentials", { device_id: "pump-1" });
    const { key_id } = await run.service.call("verify", { key: public_key });
    for (let at = 0; at < 2; at++) {
      expect(await run.service.call("revokeDevice", { device_id: "pump-1" })).toEqual({ client_ids: [] });
    }
    await run.service.received();
    expect(run.service.revoked.filter((id) => id === key_id)).toHaveLength(2);
  });
});
