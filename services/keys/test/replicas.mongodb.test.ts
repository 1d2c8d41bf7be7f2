import { randomBytes, randomUUID } from "node:crypto";
import { type MongoStore, openMongo } from "@devmesh/store/mongodb";
import { type MongoUrl, parseStoreUrl } from "@devmesh/store/store-url";
import { describeOverMongodb } from "@devmesh/testkit/describe-over-mongodb";
import type { TestDatabase } from "@devmesh/testkit/mongodb";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { apiKeyCollection, createMongoApiKeyStore } from "../src/store/api-key-store.mongodb.ts";
import type { StoredApiKey } from "../src/store/api-key-store.ts";
import type { StoredCredentials } from "../src/store/credential-store.ts";
import { openMongoKeyStore } from "../src/store/key-store.mongodb.ts";
import type { KeyStore } from "../src/store/key-store.ts";
import { interleave } from "./interleaving.ts";

const { signal } = new AbortController();
const now = Date.parse("2026-01-01T00:00:00Z");
/** How long after `now` what a dead deletion left counts for nothing. */
const afterMarkMs = 15_000;

const masterKey = (id: string): StoredApiKey => ({
  id,
  digest: randomBytes(32),
  sealed: randomBytes(60),
  device_id: null,
  epoch: null,
  name: null,
  created_at: now,
  last_used: null,
  expires_at: null,
});
const secret = () => ({ digest: randomBytes(32), sealed: randomBytes(60) });
const credentials = (deviceId: string): StoredCredentials => ({
  deviceId,
  epoch: randomUUID(),
  token: secret(),
  publicKey: secret(),
});

describeOverMongodb("replicas on one key store in MongoDB", (mongodb) => {
  let database: TestDatabase;
  let url: MongoUrl;
  let replicas: readonly [KeyStore, KeyStore];
  beforeEach(async () => {
    database = mongodb().newDatabase();
    url = parseStoreUrl(database.storeUrl) as MongoUrl;
    replicas = [await openMongoKeyStore(url, signal), await openMongoKeyStore(url, signal)];
  });
  afterEach(async () => {
    for (const store of replicas) await store.close();
    await database[Symbol.asyncDispose]();
  });
  const ofReplica = (at: number): KeyStore => replicas[at % 2 === 0 ? 0 : 1];
  const atOnce = <T>(count: number, work: (store: KeyStore, at: number) => Promise<T>) =>
    Promise.all(Array.from({ length: count }, (_, at) => work(ofReplica(at), at)));

  describe("the last master key", () => {
    test("is left over by deletions of all of them through both, in every round", async () => {
      const { apiKeys } = replicas[0];
      for (let round = 0; round < 8; round++) {
        const ids = Array.from({ length: 6 }, (_, at) => `${round}-${at}`);
        for (const id of ids) await apiKeys.insert(masterKey(id), signal);
        const left = (await apiKeys.list(null, 100, signal)).map(({ id }) => id);
        const endings = await atOnce(left.length, ({ apiKeys: keys }, at) =>
          keys.delete(left[at] ?? "", now, signal),
        );
        expect(endings.filter((ending) => ending === "last_master_key")).toHaveLength(1);
        expect(await apiKeys.list(null, 100, signal)).toHaveLength(1);
      }
    });

    test("is asked for by both at once and deleted by neither", async () => {
      await replicas[0].apiKeys.insert(masterKey("a"), signal);
      const endings = await atOnce(6, ({ apiKeys }) => apiKeys.delete("a", now, signal));
      expect(new Set(endings)).toEqual(new Set(["last_master_key"]));
    });

    describe("step by step", () => {
      let store: MongoStore;
      beforeEach(async () => {
        store = await openMongo(url, [], signal);
      });
      afterEach(() => store.close());
      const marked = () =>
        store.db.collection(apiKeyCollection.name).countDocuments({ mark: { $exists: true } });

      test("of two deletions in any order of their steps one deletes and one is refused", async () => {
        const steps = 7;
        for (let order = 0; order < 2 ** steps; order++) {
          const ids = [`${order}-a`, `${order}-b`] as const;
          for (const id of ids) await replicas[0].apiKeys.insert(masterKey(id), signal);
          const schedule = Array.from({ length: steps }, (_, step) => (order >> step) & 1);
          const endings = await interleave(
            store,
            schedule,
            ids.map((id) => (gated) => createMongoApiKeyStore(gated).delete(id, now, signal)),
          );
          expect([schedule, endings.toSorted()]).toEqual([schedule, ["deleted", "last_master_key"]]);
          expect(await replicas[0].apiKeys.list(null, 9, signal)).toHaveLength(1);
          expect(await marked()).toBe(0);
          await replicas[0].apiKeys.deleteAll(ids, signal);
        }
      });

      test("a deletion that dies after any of its steps protects nothing for long and loses nothing", async () => {
        for (let lived = 0; lived < 4; lived++) {
          const ids = [`${lived}-a`, `${lived}-b`] as const;
          for (const id of ids) await replicas[0].apiKeys.insert(masterKey(id), signal);
          let calls = 0;
          const dying: MongoStore = {
            ...store,
            async run(given, work) {
              if (calls++ === lived) throw new Error("died");
              return await store.run(given, work);
            },
          };
          const death = createMongoApiKeyStore(dying).delete(ids[0], now, signal);
          await expect(death).rejects.toThrow("died");
          const { apiKeys } = replicas[1];
          expect(await apiKeys.delete(ids[1], now + afterMarkMs, signal)).toBe("deleted");
          expect(await apiKeys.delete(ids[0], now + afterMarkMs, signal)).toBe("last_master_key");
          expect(await marked()).toBe(0);
          await apiKeys.deleteAll(ids, signal);
        }
      });

      test("a deletion that slept until it was given up deletes nothing on the strength of its old mark", async () => {
        for (const id of ["a", "b"]) await replicas[0].apiKeys.insert(masterKey(id), signal);
        // Reads, marks and looks; before it deletes, the other deletion takes it for dead and goes through.
        const schedule = [0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0];
        const endings = await interleave(store, schedule, [
          (gated) => createMongoApiKeyStore(gated).delete("a", now, signal),
          (gated) => createMongoApiKeyStore(gated).delete("b", now + afterMarkMs, signal),
        ]);
        expect(endings).toEqual(["last_master_key", "deleted"]);
        expect((await replicas[0].apiKeys.list(null, 9, signal)).map(({ id }) => id)).toEqual(["a"]);
      });
    });
  });

  test("one master key is made by both at once on an empty store, and one setting stands", async () => {
    for (let round = 0; round < 10; round++) {
      const made = await atOnce(6, ({ apiKeys }, at) =>
        apiKeys.insertMasterIfNone(masterKey(`${round}-${at}`), now, signal),
      );
      expect(new Set(made.map(({ id }) => id)).size).toBe(1);
      const values = await atOnce(6, (store, at) =>
        store.putSettingIfAbsent(`setting-${round}`, Buffer.from([at]), signal),
      );
      expect(new Set(values.map((value) => value[0])).size).toBe(1);
      await replicas[0].apiKeys.deleteAll(
        made.map(({ id }) => id),
        signal,
      );
    }
  });

  test("a device issued credentials by both has one pair, and a revocation beats every login", async () => {
    for (let round = 0; round < 15; round++) {
      const id = `device-${round}`;
      const issued = await atOnce(4, (store) => store.credentials.issue(credentials(id), signal));
      const [first] = issued;
      if (first === undefined || first === "revoked") throw new Error("not issued");
      expect(new Set(issued.map((one) => one !== "revoked" && one.epoch))).toEqual(new Set([first.epoch]));
      const { epoch, token } = first;
      const [revoked, ...recorded] = await Promise.all([
        replicas[0].credentials.revoke(id, signal),
        ...Array.from({ length: 6 }, (_, at) =>
          ofReplica(at).credentials.recordClient(
            {
              deviceId: id,
              epoch,
              tokenDigest: token.digest,
              clientId: `${id}:${at}`,
              at: now,
              generated: false,
            },
            signal,
          ),
        ),
      ]);
      // Who was admitted is among those whose sessions are wiped.
      const admitted = recorded.flatMap((was, at) => (was ? [`${id}:${at}`] : []));
      expect(revoked).toEqual(admitted);
      expect(await replicas[1].credentials.findLogin(id, id, signal)).toBeNull();
    }
  });

  test("client ids that both record at once are all kept", async () => {
    const one = credentials("d");
    await replicas[0].credentials.issue(one, signal);
    const { epoch, token } = one;
    await atOnce(40, (store, at) =>
      store.credentials.recordClient(
        {
          deviceId: "d",
          epoch,
          tokenDigest: token.digest,
          clientId: `d:${at % 20}`,
          at: now + at,
          generated: false,
        },
        signal,
      ),
    );
    expect(await replicas[0].credentials.revoke("d", signal)).toHaveLength(20);
  });

  test("a window of mails holds as many as its limit, whichever replica takes them", async () => {
    for (let round = 0; round < 15; round++) {
      const taken = await atOnce(8, ({ mailSlots }) =>
        mailSlots.take(`window-${round}`, 3, now - 100, now, signal),
      );
      expect(taken.filter(Boolean)).toHaveLength(3);
      await atOnce(2, ({ mailSlots }) => mailSlots.giveBack(`window-${round}`, now, signal));
      const again = await atOnce(6, ({ mailSlots }) =>
        mailSlots.take(`window-${round}`, 3, now - 100, now + 1, signal),
      );
      expect(again.filter(Boolean)).toHaveLength(2);
    }
  });
});
