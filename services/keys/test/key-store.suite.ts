import { randomBytes, randomUUID } from "node:crypto";
import { maxKnownClientIds } from "@devmesh/contracts/keys";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import type { StoredApiKey } from "../src/store/api-key-store.ts";
import type { StoredCredentials } from "../src/store/credential-store.ts";
import type { StoredCustomer } from "../src/store/customer-store.ts";
import type { KeyStore } from "../src/store/key-store.ts";
import type { StoredSession } from "../src/store/session-store.ts";

/** Opens an empty store; `reopen` closes it and opens what it kept. */
export interface StoreUnderTest {
  open(): Promise<KeyStore>;
  reopen(store: KeyStore): Promise<KeyStore>;
  remove(): Promise<void>;
}

const now = Date.parse("2026-01-01T00:00:00Z");
const signal = new AbortController().signal;
let made = 0;

function apiKey(members: Partial<StoredApiKey> = {}): StoredApiKey {
  return {
    id: `key-${String(++made).padStart(6, "0")}`,
    digest: randomBytes(32),
    sealed: randomBytes(60),
    device_id: null,
    epoch: null,
    name: null,
    created_at: now,
    last_used: null,
    expires_at: null,
    ...members,
  };
}

function session(members: Partial<StoredSession> = {}): StoredSession {
  return {
    id: `session-${String(++made).padStart(6, "0")}`,
    digest: randomBytes(32),
    master_key_id: "key-1",
    name: null,
    created_at: now,
    last_used: null,
    expires_at: now + 1,
    ...members,
  };
}

function secret() {
  return { digest: randomBytes(32), sealed: randomBytes(60) };
}

function credentials(deviceId: string): StoredCredentials {
  return { deviceId, epoch: randomUUID(), token: secret(), publicKey: secret() };
}

function customer(members: Partial<StoredCustomer> = {}): StoredCustomer {
  const id = `customer-${String(++made).padStart(6, "0")}`;
  return {
    id,
    email: `${id}@example.com`,
    token_digest: randomBytes(32),
    token_sealed: randomBytes(60),
    meta: "{}",
    created_at: now,
    updated_at: now,
    confirmed_at: null,
    invited_at: now,
    ...members,
  };
}

/** What every adapter of the port must do. */
export function keyStoreSuite(name: string, makeStore: () => Promise<StoreUnderTest>): void {
  describe(`a key store in ${name}`, () => {
    let place: StoreUnderTest;
    let store: KeyStore;
    beforeEach(async () => {
      place = await makeStore();
      store = await place.open();
    });
    afterEach(async () => {
      await store.close();
      await place.remove();
    });

    describe("API keys", () => {
      test("are found by digest with all that was stored", async () => {
        const key = apiKey({ device_id: "pump-1", epoch: "e", name: "Ann's", expires_at: now + 5 });
        expect(await store.apiKeys.insert(key, signal)).toBe(true);
        const found = await store.apiKeys.findByDigest(key.digest, signal);
        expect(found && { ...found, digest: [...found.digest], sealed: [...found.sealed] }).toEqual({
          ...key,
          digest: [...key.digest],
          sealed: [...key.sealed],
        });
        expect(await store.apiKeys.findByDigest(randomBytes(32), signal)).toBeNull();
        expect(await store.apiKeys.find(key.id, signal)).toEqual(found);
        expect(await store.apiKeys.find("nobody", signal)).toBeNull();
      });

      test("have unique digests", async () => {
        const key = apiKey();
        await store.apiKeys.insert(key, signal);
        expect(await store.apiKeys.insert(apiKey({ digest: key.digest }), signal)).toBe(false);
        expect(await store.apiKeys.list(null, 10, signal)).toHaveLength(1);
      });

      test("are listed in order of id, after the cursor, as many as requested", async () => {
        const keys = [apiKey(), apiKey(), apiKey()];
        for (const key of keys.toReversed()) await store.apiKeys.insert(key, signal);
        const ids = async (after: string | null, limit: number) =>
          (await store.apiKeys.list(after, limit, signal)).map(({ id }) => id);
        expect(await ids(null, 10)).toEqual(keys.map(({ id }) => id));
        expect(await ids(null, 2)).toEqual([keys[0]?.id, keys[1]?.id]);
        expect(await ids(keys[1]?.id ?? "", 10)).toEqual([keys[2]?.id]);
      });

      test("are counted", async () => {
        expect(await store.apiKeys.count(signal)).toBe(0);
        for (const key of [apiKey(), apiKey()]) await store.apiKeys.insert(key, signal);
        expect(await store.apiKeys.count(signal)).toBe(2);
      });

      test("leave one valid master key over, however many are deleted at once", async () => {
        const keys = Array.from({ length: 8 }, () => apiKey());
        for (const key of keys) await store.apiKeys.insert(key, signal);
        const endings = await Promise.all(keys.map(({ id }) => store.apiKeys.delete(id, now, signal)));
        expect(endings.filter((ending) => ending === "last_master_key")).toHaveLength(1);
        expect(await store.apiKeys.list(null, 10, signal)).toHaveLength(1);
      });

      test("count neither expired master keys nor device keys as the last master key", async () => {
        const master = apiKey();
        const expired = apiKey({ expires_at: now });
        const ofDevice = apiKey({ device_id: "d", epoch: "e" });
        for (const key of [master, expired, ofDevice]) await store.apiKeys.insert(key, signal);
        expect(await store.apiKeys.delete(master.id, now, signal)).toBe("last_master_key");
        expect(await store.apiKeys.delete(expired.id, now, signal)).toBe("deleted");
        expect(await store.apiKeys.delete(ofDevice.id, now, signal)).toBe("deleted");
        expect(await store.apiKeys.delete("nobody", now, signal)).toBe("not_found");
        expect((await store.apiKeys.list(null, 10, signal)).map(({ id }) => id)).toEqual([master.id]);
      });

      test("made where no master key is valid are one, however many are made at once", async () => {
        const others = [apiKey({ expires_at: now }), apiKey({ device_id: "d", epoch: "e" })];
        for (const key of others) await store.apiKeys.insert(key, signal);
        const made = await Promise.all(
          Array.from({ length: 8 }, () => store.apiKeys.insertMasterIfNone(apiKey(), now, signal)),
        );
        expect(new Set(made.map(({ id }) => id)).size).toBe(1);
        expect(await store.apiKeys.list(null, 10, signal)).toHaveLength(3);
        const added = apiKey();
        await store.apiKeys.insert(added, signal);
        expect(await store.apiKeys.delete(made[0]?.id ?? "", now, signal)).toBe("deleted");
        expect((await store.apiKeys.insertMasterIfNone(apiKey(), now, signal)).id).toBe(added.id);
      });

      test("of a device whose credentials have another epoch are orphans", async () => {
        const issued = credentials("d");
        await store.credentials.issue(issued, signal);
        const live = apiKey({ device_id: "d", epoch: issued.epoch });
        const orphans = [apiKey({ device_id: "d", epoch: "old" }), apiKey({ device_id: "x", epoch: "e" })];
        const master = apiKey();
        for (const key of [live, ...orphans, master]) await store.apiKeys.insert(key, signal);
        expect(await store.apiKeys.listIdsOfDevice("d", signal)).toEqual([live.id, orphans[0]?.id]);
        expect(await store.apiKeys.deleteOrphans(signal)).toBe(2);
        expect((await store.apiKeys.list(null, 10, signal)).map(({ id }) => id)).toEqual([
          live.id,
          master.id,
        ]);
        await store.apiKeys.deleteAll([live.id, "nobody"], signal);
        expect(await store.apiKeys.listIdsOfDevice("d", signal)).toEqual([]);
      });

      test("keep the latest time of use", async () => {
        const key = apiKey();
        await store.apiKeys.insert(key, signal);
        const uses = [now + 60_000, now].map((at) => ({ id: key.id, at }));
        await store.apiKeys.recordUses([...uses, { id: "nobody", at: now }], signal);
        expect((await store.apiKeys.findByDigest(key.digest, signal))?.last_used).toBe(now + 60_000);
      });
    });

    describe("sessions", () => {
      test("are found by digest with all that was stored, and outlast a restart", async () => {
        const one = session({ name: "Firefox on Linux", last_used: now });
        await store.sessions.insert(one, signal);
        await expect(store.sessions.insert(session({ digest: one.digest }), signal)).rejects.toThrow();
        store = await place.reopen(store);
        const found = await store.sessions.findByDigest(one.digest, signal);
        expect(found && { ...found, digest: [...found.digest] }).toEqual({ ...one, digest: [...one.digest] });
        expect(await store.sessions.findByDigest(randomBytes(32), signal)).toBeNull();
      });

      test("are listed in order of id, and deleted", async () => {
        const three = [session(), session(), session()];
        for (const one of three.toReversed()) await store.sessions.insert(one, signal);
        const ids = three.map(({ id }) => id);
        const listed = async () => (await store.sessions.list(signal)).map(({ id }) => id);
        expect(await listed()).toEqual(ids);
        expect(await store.sessions.deleteAll([ids[0] ?? "", ids[2] ?? "", "nobody"], signal)).toBe(2);
        expect(await store.sessions.deleteAll([], signal)).toBe(0);
        expect(await listed()).toEqual([ids[1]]);
      });

      test("keep the latest time of use", async () => {
        const one = session();
        await store.sessions.insert(one, signal);
        const uses = [now + 60_000, now].map((at) => ({ id: one.id, at }));
        await store.sessions.recordUses([...uses, { id: "nobody", at: now }], signal);
        expect((await store.sessions.findByDigest(one.digest, signal))?.last_used).toBe(now + 60_000);
      });
    });

    describe("device credentials", () => {
      test("issued twice stay the first ones", async () => {
        const both = [credentials("d"), credentials("d")];
        const answers = await Promise.all(both.map((one) => store.credentials.issue(one, signal)));
        // Of two at once either may be the first.
        const first = both.find(({ epoch }) =>
          answers.every((one) => one !== "revoked" && one.epoch === epoch),
        );
        expect(both).toContain(first);
        expect(await store.credentials.issue(credentials("d"), signal)).toMatchObject({
          epoch: first?.epoch,
        });
        const digest = first?.publicKey.digest ?? Buffer.of();
        expect((await store.credentials.findByPublicKey(digest, signal))?.deviceId).toBe("d");
        expect(await store.credentials.isKnown("d", signal)).toBe(true);
        expect(await store.credentials.isKnown("x", signal)).toBe(false);
      });

      test("are replaced one by one, and only in their epoch", async () => {
        const issued = credentials("d");
        await store.credentials.issue(issued, signal);
        const [token, publicKey] = [secret(), secret()];
        expect(await store.credentials.replace("d", issued.epoch, { token }, signal)).toBe(true);
        expect(await store.credentials.replace("d", issued.epoch, { publicKey }, signal)).toBe(true);
        expect(await store.credentials.replace("d", "old", { token: secret() }, signal)).toBe(false);
        const held = await store.credentials.find("d", signal);
        expect(Buffer.from(held?.token.digest ?? []).equals(token.digest)).toBe(true);
        expect(await store.credentials.findByPublicKey(issued.publicKey.digest, signal)).toBeNull();
        expect((await store.credentials.findByPublicKey(publicKey.digest, signal))?.deviceId).toBe("d");
      });

      test("once revoked are invalid, refuse a new issue, and keep the client ids until they are forgotten", async () => {
        const issued = credentials("d");
        await store.credentials.issue(issued, signal);
        await seen(issued, "d:1", now);
        expect(await store.credentials.revoke("d", signal)).toEqual(["d:1"]);
        expect(await store.credentials.revoke("d", signal)).toEqual(["d:1"]);
        expect(await store.credentials.find("d", signal)).toBeNull();
        expect(await store.credentials.findLogin("d", "d:1", signal)).toBeNull();
        expect(await store.credentials.findByPublicKey(issued.publicKey.digest, signal)).toBeNull();
        expect(await store.credentials.issue(credentials("d"), signal)).toBe("revoked");
        expect(await store.credentials.replace("d", issued.epoch, { token: secret() }, signal)).toBe(false);
        expect(await seen(issued, "d:2", now)).toBe(false);

        await store.credentials.forget("d", signal);
        await store.credentials.forget("d", signal);
        const next = credentials("d");
        expect(await store.credentials.issue(next, signal)).toMatchObject({ epoch: next.epoch });
        await store.credentials.forget("d", signal);
        expect(await store.credentials.find("d", signal)).not.toBeNull();
        expect(await store.credentials.revoke("d", signal)).toEqual([]);
        expect(await store.credentials.revoke("nobody", signal)).toEqual([]);
      });

      test("tell a login when its client id was seen last", async () => {
        const issued = credentials("d");
        await store.credentials.issue(issued, signal);
        expect((await store.credentials.findLogin("d", "d", signal))?.clientSeenAt).toBeNull();
        await seen(issued, "d", now);
        await seen(issued, "d", now + 5);
        expect(await store.credentials.findLogin("d", "d", signal)).toMatchObject({
          epoch: issued.epoch,
          clientSeenAt: now + 5,
        });
        expect(await store.credentials.findLogin("x", "d", signal)).toBeNull();
      });

      test("record no client id for a token that was replaced meanwhile", async () => {
        const issued = credentials("d");
        await store.credentials.issue(issued, signal);
        await store.credentials.replace("d", issued.epoch, { token: secret() }, signal);
        expect(await seen(issued, "d", now)).toBe(false);
        expect(await store.credentials.revoke("d", signal)).toEqual([]);
      });

      test("keep a bounded number of client ids: generated ones go first, then the oldest", async () => {
        const issued = credentials("d");
        await store.credentials.issue(issued, signal);
        await seen(issued, "generated", now + 1_000_000, true);
        await Promise.all(
          Array.from({ length: maxKnownClientIds }, (_, at) => seen(issued, `d:${at}`, now + at)),
        );
        const kept = await store.credentials.revoke("d", signal);
        expect(kept).toHaveLength(maxKnownClientIds);
        expect(kept).not.toContain("generated");
        expect(kept).toContain("d:0");
      });

      test("outlive a restart, client ids included", async () => {
        const issued = credentials("d");
        await store.credentials.issue(issued, signal);
        await seen(issued, "d:7", now);
        store = await place.reopen(store);
        expect((await store.credentials.findLogin("d", "d:7", signal))?.clientSeenAt).toBe(now);
      });

      function seen(
        { deviceId, epoch, token }: StoredCredentials,
        clientId: string,
        at: number,
        generated = false,
      ) {
        const client = { deviceId, epoch, tokenDigest: token.digest, clientId, at, generated };
        return store.credentials.recordClient(client, signal);
      }
    });

    describe("customers", () => {
      test("are one for an address, also when several are stored at once", async () => {
        const email = "ann@example.com";
        const stored = await Promise.all(
          Array.from({ length: 5 }, () => store.customers.insert(customer({ email }), signal)),
        );
        expect(stored.filter(Boolean)).toHaveLength(1);
        expect((await store.customers.recordInvitation(email, now + 9, signal))?.invited_at).toBe(now + 9);
        expect(await store.customers.recordInvitation("bob@example.com", now, signal)).toBeNull();
      });

      test("are found by id and by token, and listed in order of id", async () => {
        const [first, second] = [customer(), customer({ meta: '{"__proto__":1}' })];
        for (const one of [second, first]) await store.customers.insert(one, signal);
        expect((await store.customers.find(second.id, signal))?.meta).toBe('{"__proto__":1}');
        expect((await store.customers.findByTokenDigest(first.token_digest, signal))?.id).toBe(first.id);
        expect((await store.customers.list(null, 5, signal)).map(({ id }) => id)).toEqual([
          first.id,
          second.id,
        ]);
        expect((await store.customers.list(first.id, 5, signal)).map(({ id }) => id)).toEqual([second.id]);
      });

      test("are confirmed once, at the first time", async () => {
        const one = customer();
        await store.customers.insert(one, signal);
        expect(await store.customers.isConfirmed(one.email, signal)).toBe(false);
        expect(await store.customers.confirm(one.id, now + 1, signal)).toBe(true);
        expect(await store.customers.confirm(one.id, now + 2, signal)).toBe(true);
        expect(await store.customers.confirm("nobody", now, signal)).toBe(false);
        expect((await store.customers.find(one.id, signal))?.confirmed_at).toBe(now + 1);
        expect(await store.customers.isConfirmed(one.email, signal)).toBe(true);
        expect(await store.customers.isConfirmed("nobody@example.com", signal)).toBe(false);
      });

      test("change meta and the time of it", async () => {
        const one = customer();
        await store.customers.insert(one, signal);
        const changed = await store.customers.replaceMeta(one.id, '{"a":1}', now + 3, signal);
        expect(changed).toMatchObject({ meta: '{"a":1}', updated_at: now + 3, created_at: now });
        expect(await store.customers.replaceMeta("nobody", "{}", now, signal)).toBeNull();
      });

      test("are counted but for those that are unconfirmed for too long", async () => {
        expect(await store.customers.count(now, signal)).toBe(0);
        const confirmed = customer({ confirmed_at: now });
        for (const one of [confirmed, customer(), customer({ invited_at: now + 1 })])
          await store.customers.insert(one, signal);
        expect(await store.customers.count(now, signal)).toBe(2);
        expect(await store.customers.count(now - 1, signal)).toBe(3);
      });

      test("go when unconfirmed for too long, and only then", async () => {
        const kept = [customer({ confirmed_at: now }), customer({ invited_at: now + 1 })];
        const over = [customer(), customer(), customer()];
        for (const one of [...kept, ...over]) await store.customers.insert(one, signal);
        const ofAddress = (email = "") => store.customers.deleteUnconfirmedOf(email, now, signal);
        for (const { email } of kept) expect(await ofAddress(email)).toBeNull();
        expect(await ofAddress(over[0]?.email)).toBe(over[0]?.id);
        expect(await store.customers.find(over[0]?.id ?? "", signal)).toBeNull();
        const next = () => store.customers.deleteUnconfirmed(now, signal);
        expect([await next(), await next(), await next()].sort()).toEqual(
          [over[1]?.id, over[2]?.id, null].sort(),
        );
        expect(await store.customers.list(null, 9, signal)).toHaveLength(2);
        expect(await store.customers.delete(kept[0]?.id ?? "", signal)).toBe(true);
        expect(await store.customers.delete(kept[0]?.id ?? "", signal)).toBe(false);
      });
    });

    describe("mail slots", () => {
      test("are taken up to the limit of a sliding window, also at once", async () => {
        const take = (at: number) => store.mailSlots.take("w", 3, at - 100, at, signal);
        expect((await Promise.all([1, 2, 3, 4].map(() => take(now)))).filter(Boolean)).toHaveLength(3);
        expect(await take(now + 99)).toBe(false);
        expect(await take(now + 100)).toBe(true);
        expect(await store.mailSlots.take("other", 3, now - 100, now, signal)).toBe(true);
      });

      test("can be given back, are pruned, and outlive a restart", async () => {
        const take = () => store.mailSlots.take("w", 1, now - 100, now, signal);
        expect(await take()).toBe(true);
        store = await place.reopen(store);
        expect(await take()).toBe(false);
        await store.mailSlots.giveBack("w", now, signal);
        expect(await take()).toBe(true);
        await store.mailSlots.prune(now + 1, signal);
        expect(await take()).toBe(true);
      });
    });

    test("a setting stays what it was first", async () => {
      const first = await store.putSettingIfAbsent("s", Buffer.from("one"), signal);
      const second = await store.putSettingIfAbsent("s", Buffer.from("two"), signal);
      expect([first, second].map((value) => Buffer.from(value).toString())).toEqual(["one", "one"]);
    });
  });
}
