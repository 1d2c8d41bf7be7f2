import type { DatabaseSync } from "node:sqlite";
import { inTransaction, unlessAborted } from "@devmesh/store/sqlite";
import type { SessionStore, StoredSession } from "./session-store.ts";

/** Sessions in the table of `key-store.sqlite.ts`. */
export function createSqliteSessionStore(db: DatabaseSync): SessionStore {
  const insert = db.prepare(`
    INSERT INTO session (id, digest, master_key_id, name, created_at, last_used, expires_at)
    VALUES (:id, :digest, :master_key_id, :name, :created_at, :last_used, :expires_at)`);
  const findByDigest = db.prepare("SELECT * FROM session WHERE digest = ?");
  const list = db.prepare("SELECT * FROM session ORDER BY id");
  const deleteById = db.prepare("DELETE FROM session WHERE id = ?");
  const recordUse = db.prepare(
    "UPDATE session SET last_used = ?1 WHERE id = ?2 AND coalesce(last_used, 0) < ?1",
  );

  return {
    insert: unlessAborted((session) => void insert.run({ ...session })),
    findByDigest: unlessAborted((digest) => {
      const row = findByDigest.get(digest);
      return row === undefined ? null : sessionOf(row);
    }),
    list: unlessAborted(() => list.all().map(sessionOf)),
    deleteAll: unlessAborted((ids) =>
      inTransaction(db, () => ids.reduce((deleted, id) => deleted + Number(deleteById.run(id).changes), 0)),
    ),
    recordUses: unlessAborted((uses) =>
      inTransaction(db, () => {
        for (const { id, at } of uses) recordUse.run(at, id);
      }),
    ),
  };
}

function sessionOf(row: Record<string, unknown>): StoredSession {
  return { ...row } as unknown as StoredSession;
}
