import type { DatabaseSync } from "node:sqlite";

/** Reads one consistent state of the store, on a connection that nothing else uses at that time. */
export function inOneState<T>(db: DatabaseSync, read: () => T): T {
  db.exec("BEGIN");
  try {
    return read();
  } finally {
    db.exec("COMMIT");
  }
}
