import { StoreUnavailable } from "@devmesh/store/store-unavailable";

/** SQLITE_TOOBIG, _CONSTRAINT, _MISMATCH and _RANGE: what was to be written is to blame. Everything else is the store's fault. */
const faultsOfInput = new Set([18, 19, 20, 25]);

/** Runs a statement; turns a failure of SQLite itself into {@link StoreUnavailable}. */
export function translatingFailures<T>(work: () => T): T {
  try {
    return work();
  } catch (cause) {
    if (!isSqliteError(cause) || faultsOfInput.has(cause.errcode & 0xff)) throw cause;
    throw new StoreUnavailable(`the store cannot be written: ${cause.errstr}`, { cause });
  }
}

/** What `node:sqlite` throws: `errcode` is SQLite's extended result code, `errstr` its meaning in words. */
function isSqliteError(error: unknown): error is { errcode: number; errstr: string } {
  return (
    typeof error === "object" &&
    error !== null &&
    "errcode" in error &&
    "errstr" in error &&
    typeof error.errcode === "number"
  );
}
