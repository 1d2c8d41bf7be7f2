import { maxSessions } from "@devmesh/contracts/model/session";
import { eventually } from "@devmesh/testkit/eventually";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { openSqliteKeyStore } from "../src/store/key-store.sqlite.ts";
import { type KeysWorld, type RunningKeys, startKeysIn, startWorld } from "./running-keys.ts";

const dayMs = 24 * 60 * 60 * 1000;

let world: KeysWorld;
let service: RunningKeys;
beforeEach(async () => {
  world = await startWorld();
  service = await startKeysIn(world);
});
afterEach(async () => {
  await service[Symbol.asyncDispose]();
  await world[Symbol.asyncDispose]();
});

const invalid = { code: "unauthenticated", reason: "key_invalid" };
const verify = (key: string) => service.call("verifySession", { key });
const listed = async () => (await service.call("listSessions", {})).map(({ id }) => id);
const later = (ms: number) => new Date(service.clock.now().getTime() + ms).toISOString();

async function createMaster(more: { name?: string; expires_at?: string } = {}): Promise<string> {
  return (await service.call("createKey", more)).id;
}

test("a session is of a master key, lasts 30 days if not less, and is no API key", async () => {
  const ann = await createMaster({ name: "Ann" });
  const { key, ...begun } = await service.call("createSession", { master_key_id: ann, name: "Firefox" });
  expect(key).toMatch(/^sk_[0-9A-Za-z]{32}$/);
  expect(begun).toMatchObject({ master_key_id: ann, name: "Firefox", last_used: null });
  expect(begun.expires_at).toBe(later(30 * dayMs));
  expect(await service.call("listSessions", {})).toEqual([begun]);
  expect(await verify(key)).toEqual({
    id: begun.id,
    master_key_id: ann,
    master_key_name: "Ann",
    expires_at: begun.expires_at,
  });
  await expect(service.call("verify", { key })).rejects.toMatchObject(invalid);
  expect((await service.call("listKeys", {})).items.map(({ id }) => id)).not.toContain(begun.id);
  const [used] = await service.call("listSessions", {});
  expect(used?.last_used).not.toBeNull();
});

test("a session ends at its time, and with its master key's at the latest", async () => {
  const brief = await createMaster({ expires_at: later(60_000) });
  const short = await service.call("createSession", { master_key_id: brief, days: 2 });
  expect(short.expires_at).toBe(later(60_000));
  const day = await service.call("createSession", { master_key_id: await createMaster(), days: 1 });
  await service.clock.advance(60_000);
  await expect(verify(short.key)).rejects.toMatchObject(invalid);
  await expect(service.call("createSession", { master_key_id: brief })).rejects.toMatchObject(invalid);
  await verify(day.key);
  expect(await listed()).toEqual([day.id]);
  await service.clock.advance(dayMs);
  await expect(verify(day.key)).rejects.toMatchObject(invalid);
});

test("a session is revoked when it is ended, and when its master key is deleted", async () => {
  const ann = await createMaster();
  const begin = (master_key_id: string) => service.call("createSession", { master_key_id });
  const [ended, orphan] = [await begin(ann), await begin(ann)];
  const other = await begin(await createMaster());
  await service.call("endSession", { id: ended.id });
  await expect(service.call("endSession", { id: ended.id })).rejects.toMatchObject({
    reason: "session_not_found",
  });
  await service.call("deleteKey", { id: ann });
  for (const { key } of [ended, orphan]) await expect(verify(key)).rejects.toMatchObject(invalid);
  await verify(other.key);
  expect(await listed()).toEqual([other.id]);
  await service.received();
  expect(service.revoked).toEqual(expect.arrayContaining([ended.id, orphan.id]));
  await expect(begin(ann)).rejects.toMatchObject(invalid);
});

test("no device key begins a session", async () => {
  await service.call("issueCredentials", { device_id: "pump" });
  const { id } = await service.call("createKey", { device_id: "pump" });
  await expect(service.call("createSession", { master_key_id: id })).rejects.toMatchObject(invalid);
});

test("one session too many ends the one that was not used for longest", async () => {
  const master_key_id = await createMaster();
  const begun = [];
  for (let nth = 0; nth < maxSessions; nth++) {
    begun.push(await service.call("createSession", { master_key_id }));
    await service.clock.advance(60_000);
  }
  const [first, second] = begun;
  await verify(first?.key ?? "");
  const last = await service.call("createSession", { master_key_id });
  const ids = await listed();
  expect(ids).toHaveLength(maxSessions);
  expect(ids).toEqual(expect.arrayContaining([first?.id, last.id]));
  expect(ids).not.toContain(second?.id);
  await service.received();
  expect(service.revoked).toEqual([second?.id]);
});

test("a session that a crash left without its master key is invalid, and the sweep deletes it", async () => {
  const master_key_id = await createMaster();
  const { key } = await service.call("createSession", { master_key_id });
  await service[Symbol.asyncDispose]();
  const { signal } = new AbortController();
  const store = openSqliteKeyStore(service.storePath);
  await store.apiKeys.deleteAll([master_key_id], signal);
  await store.close();
  service = await startKeysIn(world);
  await expect(verify(key)).rejects.toMatchObject(invalid);
  await eventually(async () => (await listed()).length === 0);
});

test("a list without secrets has the same keys", async () => {
  await createMaster({ name: "Ann" });
  const { items } = await service.call("listKeys", {});
  const hidden = await service.call("listKeysWithoutSecrets", {});
  expect(items.every(({ key }) => key !== null)).toBe(true);
  expect(hidden.items).toEqual(items.map((one) => ({ ...one, key: null })));
});
