import { isSqliteFailure } from "./sqlite-failure.ts";

/** The store is away, full, locked or broken, whatever the input. The request may still have been carried out. */
export class StoreUnavailable extends Error {
  override readonly name = "StoreUnavailable";
}

/** Whether the store failed, as {@link StoreUnavailable} or as SQLite's error. */
export function isStoreUnavailable(error: unknown): boolean {
  return error instanceof StoreUnavailable || isSqliteFailure(error);
}
