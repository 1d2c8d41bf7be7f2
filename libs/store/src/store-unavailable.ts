import { isSqliteFailure } from "./sqlite-failure.ts";

/**
 * The store cannot do it now, whatever the input (away, full, locked, broken), but may be able to again. What was
 * asked may have been done all the same when the store went away in the middle of it, unless the method says
 * otherwise.
 */
export class StoreUnavailable extends Error {
  override readonly name = "StoreUnavailable";
}

/** Whether an error says {@link StoreUnavailable}, in its own words or in SQLite's. */
export function isStoreUnavailable(error: unknown): boolean {
  return error instanceof StoreUnavailable || isSqliteFailure(error);
}
