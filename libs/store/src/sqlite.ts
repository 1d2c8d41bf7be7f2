import { existsSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";

/** One step of a schema's history; its position in the list is its version, so the list only ever grows. */
export type Migration = string;

/** How a SQLite store is opened. */
export interface SqliteOptions {
  /** All steps of the schema, oldest first. */
  readonly migrations: readonly Migration[];
}

/** A SQLite store that this process alone may write. */
export interface SqliteStore {
  readonly db: DatabaseSync;
  /** Closes the database and lets another process open it. */
  close(): void;
}

const memory = ":memory:";

/**
 * Opens a database for one writer, the only replica of a service (ADR 3), and migrates its schema. Each commit is
 * synced to the disk.
 * @throws Error, one sentence, when another process holds the store, the file cannot be used, or its schema is newer.
 */
export function openSqlite(path: string, options: SqliteOptions): SqliteStore {
  if (path !== memory) makeFolder(dirname(path));
  const lock = path === memory ? null : holdLock(path);
  try {
    const db = openDatabase(path);
    migrate(db, options.migrations);
    return {
      db,
      close() {
        db.close();
        lock?.close();
      },
    };
  } catch (error) {
    lock?.close();
    throw error;
  }
}

function openDatabase(path: string): DatabaseSync {
  let db: DatabaseSync | null = null;
  try {
    db = new DatabaseSync(path);
    db.exec(`
      PRAGMA journal_mode = WAL;
      PRAGMA synchronous = full;
      PRAGMA busy_timeout = 5000;
      PRAGMA foreign_keys = ON;
    `);
    return db;
  } catch (cause) {
    db?.close();
    // SQLite's message does not name the file.
    const why = typeof cause === "object" && cause !== null && "message" in cause ? cause.message : cause;
    throw new Error(`the store ${path} cannot be opened: ${why}`, { cause });
  }
}

/** Opens a database for reading beside its writer, for instance in a worker thread. The caller closes it. */
export function openSqliteReader(path: string): DatabaseSync {
  const db = new DatabaseSync(path, { readOnly: true });
  db.exec("PRAGMA busy_timeout = 5000; PRAGMA query_only = ON;");
  return db;
}

/** Runs `work` in one transaction; a throw rolls back. SQLite calls are synchronous, so nothing comes between. */
export function inTransaction<T>(db: DatabaseSync, work: () => T): T {
  db.exec("BEGIN IMMEDIATE");
  try {
    const result = work();
    db.exec("COMMIT");
    return result;
  } catch (error) {
    if (db.isTransaction) db.exec("ROLLBACK");
    throw error;
  }
}

/** A store's method made of synchronous work, which is not begun once the signal of the call has aborted. */
export function unlessAborted<A extends unknown[], R>(
  work: (...given: A) => R,
): (...given: [...A, AbortSignal]) => Promise<R> {
  return async (...given) => {
    (given.at(-1) as AbortSignal).throwIfAborted();
    return work(...(given.slice(0, -1) as A));
  };
}

/**
 * Makes a folder and its parents. Node's own `recursive` never returns where a parent cannot be made, as below `/proc`.
 */
function makeFolder(path: string): void {
  if (existsSync(path)) return;
  const above = dirname(path);
  if (above !== path) makeFolder(above);
  mkdirSync(path);
}

/** An open transaction on another file: the system ends it with the process, however that ends. */
function holdLock(path: string): DatabaseSync {
  const lock = new DatabaseSync(`${path}.lock`);
  try {
    lock.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE;");
    return lock;
  } catch (cause) {
    lock.close();
    throw new Error(
      `another process holds the store ${path}: with SQLite a service runs as one replica; use one store a replica set`,
      { cause },
    );
  }
}

function migrate(db: DatabaseSync, migrations: readonly Migration[]): void {
  const version = Number(db.prepare("PRAGMA user_version").get()?.user_version ?? 0);
  if (version > migrations.length) {
    throw new Error(
      `the store has schema version ${version}, this program knows ${migrations.length}: start the newer program again`,
    );
  }
  for (const [at, migration] of migrations.entries()) {
    if (at < version) continue;
    inTransaction(db, () => {
      db.exec(migration);
      db.exec(`PRAGMA user_version = ${at + 1}`);
    });
  }
}
