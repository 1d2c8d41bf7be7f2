import type { DatabaseSync } from "node:sqlite";
import type { MailSlotStore } from "./mail-slots.ts";
import { unlessAborted } from "./sqlite.ts";

/** The table of mail slots; `keys` has it in its first migration. */
export const mailSlotTables = `
  CREATE TABLE mail_slot (window TEXT NOT NULL, taken_at INTEGER NOT NULL) STRICT;
  CREATE INDEX mail_slot_of_window ON mail_slot (window, taken_at);
  CREATE INDEX mail_slot_age ON mail_slot (taken_at);
`;

/** Mail slots in a SQLite file that has the table. */
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
