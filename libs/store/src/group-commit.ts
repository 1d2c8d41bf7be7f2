import type { DatabaseSync } from "node:sqlite";
import { inTransaction } from "./sqlite.ts";

interface Write {
  readonly work: () => unknown;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Commits the writes of one turn of the event loop together, in order, with one sync to the disk (ADR 13). A write that
 * throws is undone alone.
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

  /** Commits what is waiting now. Call it before the database is closed. */
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
            // A full disk rolls back the whole transaction.
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
    for (const settleOne of settle) settleOne();
  }
}
