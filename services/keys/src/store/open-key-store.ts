import { parseStoreUrl } from "@devmesh/store/store-url";
import { openMongoKeyStore } from "./key-store.mongodb.ts";
import { openSqliteKeyStore } from "./key-store.sqlite.ts";
import type { KeyStore } from "./key-store.ts";

/** The store that `STORE_URL` names. Rejects with one clear sentence when it cannot be opened. */
export async function openKeyStore(storeUrl: string, signal: AbortSignal): Promise<KeyStore> {
  const url = parseStoreUrl(storeUrl);
  return url.kind === "mongodb" ? await openMongoKeyStore(url, signal) : openSqliteKeyStore(url.path);
}
