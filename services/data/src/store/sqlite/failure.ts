import { isSqliteFailure } from "@devmesh/store/sqlite-failure";
import { StoreUnavailable } from "@devmesh/store/store-unavailable";

/** Runs a statement; turns a failure of SQLite itself into {@link StoreUnavailable}. */
export function translatingFailures<T>(work: () => T): T {
  try {
    return work();
  } catch (cause) {
    if (!isSqliteFailure(cause)) throw cause;
    throw new StoreUnavailable(`the store cannot be written: ${cause.errstr}`, { cause });
  }
}
