import { parseStoreUrl } from "@devmesh/store/store-url";
import { openMongoDeviceStore } from "./device-store.mongodb.ts";
import { createSqliteDeviceStore } from "./device-store.sqlite.ts";
import type { DeviceStore } from "./device-store.ts";

/** The store that `STORE_URL` names. Rejects with one clear sentence when it cannot be opened. */
export async function openDeviceStore(storeUrl: string, signal: AbortSignal): Promise<DeviceStore> {
  const url = parseStoreUrl(storeUrl);
  return url.kind === "mongodb" ? await openMongoDeviceStore(url, signal) : createSqliteDeviceStore(url.path);
}
