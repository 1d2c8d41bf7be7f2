import type { DatabaseSync } from "node:sqlite";
import { inTransaction } from "@devmesh/store/sqlite";

interface Write {
  readonly work: () => unknown;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Commits the writes of concurrent calls together, so that they share one sync to the disk instead of waiting for one
 * another's. Writes run in the order they came; one that throws is undone alone. Nothing is read in between: SQLite
 * calls are synchronous and a group is one turn of the event loop.
 */
export class GroupCommit {
  readonly #db: DatabaseSync;
  #waiting: Write[] = [];

  constructor(db: DatabaseSync) {
    this.#db = db;
  }

  /** Resolves with what `work` returned once it is committed; rejects with what it threw, or when the commit fails. */
  run<T>(work: () => T, signal: AbortSignal): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      if (this.#waiting.length === 0) setImmediate(() => this.flush());
      this.#waiting.push({ work, resolve: resolve as (result: unknown) => void, reject });
    });
  }

  /** Commits what is waiting now, for instance before the database is closed. */
  flush(): void {
    const group = this.#waiting;
    this.#waiting = [];
    if (group.length === 0) return;
    const settle: (() => void)[] = [];
    try {
      inTransaction(this.#db, () => {
        for (const { work, resolve, reject } of group) {
          this.#db.exec("SAVEPOINT write");
          try {
            const result = work();
            settle.push(() => resolve(result));
          } catch (error) {
            // A full disk ends the whole transaction: then there is nothing to go on with.
            if (!this.#db.isTransaction) throw error;
            this.#db.exec("ROLLBACK TO write");
            settle.push(() => reject(error));
          }
          this.#db.exec("RELEASE write");
        }
      });
    } catch (error) {
      for (const { reject } of group) reject(error);
      return;
    }
    for (const tell of settle) tell();
  }
}
