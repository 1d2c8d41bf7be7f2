import type { StoreUrl } from "@devmesh/store/store-url";
import { openMongoDataStore } from "./data-store.mongodb.ts";
import { openSqliteDataStore, segmentBytesFor } from "./data-store.sqlite.ts";
import type { DataStore } from "./data-store.ts";

/** Bounds of a store, by which its layout goes. */
export interface DataStoreBounds {
  /** What the store may occupy, in bytes. */
  readonly maxBytes: number;
  /** Ends the opening. */
  readonly signal: AbortSignal;
}

/**
 * Opens the store that `STORE_URL` names.
 * @throws Error with one clear sentence when it cannot be opened: another process holds the file, no server answers.
 */
export async function openDataStore(
  url: StoreUrl,
  { maxBytes, signal }: DataStoreBounds,
): Promise<DataStore> {
  if (url.kind === "mongodb") return await openMongoDataStore(url, signal);
  return openSqliteDataStore(url.path, { segmentBytes: segmentBytesFor(maxBytes) });
}
