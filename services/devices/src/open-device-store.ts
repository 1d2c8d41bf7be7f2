import { parseStoreUrl } from "@devmesh/store/store-url";
import { createSqliteDeviceStore } from "./device-store.sqlite.ts";
import type { DeviceStore } from "./device-store.ts";

/** The store that `STORE_URL` names. Throws with one clear sentence when it cannot be opened. */
export function openDeviceStore(url: string): DeviceStore {
  return createSqliteDeviceStore(parseStoreUrl(url).path);
}
