import type { DatabaseSync } from "node:sqlite";
import { unlessAborted } from "@devmesh/store/sqlite";
import type { MailSlotStore } from "./mail-slot-store.ts";

/** Mail slots in the tables of `key-store.sqlite.ts`. */
export function createSqliteMailSlotStore(db: DatabaseSync): MailSlotStore {
  const take = db.prepare(`
    INSERT INTO mail_slot (window, taken_at)
    SELECT ?1, ?2 WHERE (SELECT count(*) FROM mail_slot WHERE window = ?1 AND taken_at > ?3) < ?4`);
  const giveBack = db.prepare(`
    DELETE FROM mail_slot WHERE rowid = (
      SELECT rowid FROM mail_slot WHERE window = ? AND taken_at = ? LIMIT 1)`);
  const prune = db.prepare("DELETE FROM mail_slot WHERE taken_at < ?");

  return {
    take: unlessAborted((window, limit, since, now) => take.run(window, now, since, limit).changes === 1),
    giveBack: unlessAborted((window, takenAt) => void giveBack.run(window, takenAt)),
    prune: unlessAborted((before) => void prune.run(before)),
  };
}
