import { maxSessions } from "@devmesh/contracts/model/session";
import { eventually } from "@devmesh/testkit/eventually";
import { expect, test } from "@jest/globals";
import { openSqliteKeyStore } from "../src/store/key-store.sqlite.ts";
import { runForEachTest, startKeysIn } from "./running-keys.ts";

const dayMs = 24 * 60 * 60 * 1000;

const run = runForEachTest();

const invalid = { code: "unauthenticated", reason: "key_invalid" };
const verify = (key: string) => run.service.call("verifySession", { key });
const listed = async () => (await run.service.call("listSessions", {})).map(({ id }) => id);
const later = (ms: number) => new Date(run.service.clock.now().getTime() + ms).toISOString();

async function createMaster(more: { name?: string; expires_at?: string } = {}): Promise<string> {
  return (await run.service.call("createKey", more)).id;
}

test("a session is of a master key, lasts 30 days if not less, and is no API key", async () => {
  const ann = await createMaster({ name: "Ann" });
  const { key, ...begun } = await run.service.call("createSession", { master_key_id: ann, name: "Firefox" });
  expect(key).toMatch(/^sk_[0-9A-Za-z]{32}$/);
  expect(begun).toMatchObject({ master_key_id: ann, name: "Firefox", last_used: null });
  expect(begun.expires_at).toBe(later(30 * dayMs));
  expect(await run.service.call("listSessions", {})).toEqual([begun]);
  expect(await verify(key)).toEqual({
    id: begun.id,
    master_key_id: ann,
    master_key_name: "Ann",
    expires_at: begun.expires_at,
  });
  await expect(run.service.call("verify", { key })).rejects.toMatchObject(invalid);
  expect((await run.service.call("listKeys", {})).items.map(({ id }) => id)).not.toContain(begun.id);
  const [used] = await run.service.call("listSessions", {});
  expect(used?.last_used).not.toBeNull();
});

test("a session ends at its time, and with its master key's at the latest", async () => {
  const brief = await createMaster({ expires_at: later(60_000) });
  const short = await run.service.call("createSession", { master_key_id: brief, days: 2 });
  expect(short.expires_at).toBe(later(60_000));
  const day = await run.service.call("createSession", { master_key_id: await createMaster(), days: 1 });
  await run.service.clock.advance(60_000);
  await expect(verify(short.key)).rejects.toMatchObject(invalid);
  await expect(run.service.call("createSession", { master_key_id: brief })).rejects.toMatchObject(invalid);
  await verify(day.key);
  expect(await listed()).toEqual([day.id]);
  await run.service.clock.advance(dayMs);
  await expect(verify(day.key)).rejects.toMatchObject(invalid);
});

test("a session is revoked when it is ended, and when its master key is deleted", async () => {
  const ann = await createMaster();
  const begin = (master_key_id: string) => run.service.call("createSession", { master_key_id });
  const [ended, orphan] = [await begin(ann), await begin(ann)];
  const other = await begin(await createMaster());
  await run.service.call("endSession", { id: ended.id });
  await expect(run.service.call("endSession", { id: ended.id })).rejects.toMatchObject({
    reason: "session_not_found",
  });
  await run.service.call("deleteKey", { id: ann });
  for (const { key } of [ended, orphan]) await expect(verify(key)).rejects.toMatchObject(invalid);
  await verify(other.key);
  expect(await listed()).toEqual([other.id]);
  await run.service.received();
  expect(run.service.revoked).toEqual(expect.arrayContaining([ended.id, orphan.id]));
  await expect(begin(ann)).rejects.toMatchObject(invalid);
});

test("no device key begins a session", async () => {
  await run.service.call("issueCredentials", { device_id: "pump" });
  const { id } = await run.service.call("createKey", { device_id: "pump" });
  await expect(run.service.call("createSession", { master_key_id: id })).rejects.toMatchObject(invalid);
});

test("one session too many ends the one that was not used for longest", async () => {
  const master_key_id = await createMaster();
  const begun = [];
  for (let nth = 0; nth < maxSessions; nth++) {
    begun.push(await run.service.call("createSession", { master_key_id }));
    await run.service.clock.advance(60_000);
  }
  const [first, second] = begun;
  await verify(first?.key ?? "");
  const last = await run.service.call("createSession", { master_key_id });
  const ids = await listed();
  expect(ids).toHaveLength(maxSessions);
  expect(ids).toEqual(expect.arrayContaining([first?.id, last.id]));
  expect(ids).not.toContain(second?.id);
  await run.service.received();
  expect(run.service.revoked).toEqual([second?.id]);
});

test("a session that a crash left without its master key is invalid, and the sweep deletes it", async () => {
  const master_key_id = await createMaster();
  const { key } = await run.service.call("createSession", { master_key_id });
  await run.service[Symbol.asyncDispose]();
  const { signal } = new AbortController();
  const store = openSqliteKeyStore(run.service.storePath);
  await store.apiKeys.deleteAll([master_key_id], signal);
  await store.close();
  run.service = await startKeysIn(run.world);
  await expect(verify(key)).rejects.toMatchObject(invalid);
  await eventually(async () => (await listed()).length === 0);
});

test("a list without secrets has the same keys", async () => {
  await createMaster({ name: "Ann" });
  const { items } = await run.service.call("listKeys", {});
  const hidden = await run.service.call("listKeysWithoutSecrets", {});
  expect(items.every(({ key }) => key !== null)).toBe(true);
  expect(hidden.items).toEqual(items.map((one) => ({ ...one, key: null })));
});
