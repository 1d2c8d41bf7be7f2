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
