import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import { expect, test } from "@jest/globals";
import { openSqliteKeyStore } from "../src/store/key-store.sqlite.ts";
import { keyStoreSuite } from "./key-store.suite.ts";

keyStoreSuite("SQLite", async () => {
  const folder = await tempFolder();
  const path = join(folder.path, "keys.db");
  return {
    open: async () => openSqliteKeyStore(path),
    async reopen(store) {
      await store.close();
      return openSqliteKeyStore(path);
    },
    remove: () => folder.remove(),
  };
});

test("a second replica on the same SQLite store is refused", async () => {
  await using folder = await tempFolder();
  const store = openSqliteKeyStore(join(folder.path, "keys.db"));
  expect(() => openSqliteKeyStore(join(folder.path, "keys.db"))).toThrow(/one replica/);
  await store.close();
});

test("credentials revoked right after a call that issues them are gone", async () => {
  await using folder = await tempFolder();
  const store = openSqliteKeyStore(join(folder.path, "keys.db"));
  const { credentials } = store;
  const { signal } = new AbortController();
  const secret = () => ({ digest: Buffer.from(randomUUID()), sealed: Buffer.from(randomUUID()) });
  const issued = { deviceId: "pump-1", epoch: randomUUID(), token: secret(), publicKey: secret() };
  await Promise.all([
    credentials.issue(issued, signal),
    credentials.revoke("pump-1", signal),
    credentials.forget("pump-1", signal),
  ]);
  expect(await credentials.find("pump-1", signal)).toBeNull();
  expect(await credentials.isKnown("pump-1", signal)).toBe(false);
  await store.close();
});
