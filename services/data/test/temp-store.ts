import { join } from "node:path";
import { tempFolder } from "@devmesh/testkit/temp-folder";
import {
  openSqliteDataStore,
  type SqliteDataStore,
  type SqliteDataStoreOptions,
} from "../src/store/data-store.sqlite.ts";

/** A SQLite store in a new folder, both gone at the end of an `await using`. */
export interface TempStore extends AsyncDisposable {
  readonly path: string;
  readonly store: SqliteDataStore;
}

/** Opens an empty store. */
export async function tempStore(options: SqliteDataStoreOptions = {}): Promise<TempStore> {
  const folder = await tempFolder();
  const path = join(folder.path, "data.db");
  const store = openSqliteDataStore(path, { readers: 1, ...options });
  return {
    path,
    store,
    async [Symbol.asyncDispose]() {
      await store.close();
      await folder.remove();
    },
  };
}
