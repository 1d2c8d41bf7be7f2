/** The store is away, full, locked or broken, whatever the input. The request may still have been carried out. */
export class StoreUnavailable extends Error {
  override readonly name = "StoreUnavailable";
}

/** Whether the store failed, as {@link StoreUnavailable} or as SQLite's error. */
export function isStoreUnavailable(error: unknown): boolean {
  return error instanceof StoreUnavailable || isSqliteFailure(error);
}

/** What `node:sqlite` throws: `errcode` is SQLite's extended result code, `errstr` its meaning in words. */
export interface SqliteFailure {
  readonly errcode: number;
  readonly errstr: string;
}

/** SQLITE_TOOBIG, _CONSTRAINT, _MISMATCH and _RANGE are errors of the input, all others of the store. */
const faultsOfInput = new Set([18, 19, 20, 25]);

/** Whether SQLite failed whatever the input: the disk full or read-only, the file locked or damaged. */
export function isSqliteFailure(error: unknown): error is SqliteFailure {
  return (
    typeof error === "object" &&
    error !== null &&
    "errcode" in error &&
    "errstr" in error &&
    typeof error.errcode === "number" &&
    !faultsOfInput.has(error.errcode & 0xff)
  );
}
