import type { DatabaseSync } from "node:sqlite";
import type { GroupCommit } from "@devmesh/store/group-commit";
import { unlessAborted } from "@devmesh/store/sqlite";
import type { RuleStore, StoredChannel, StoredRule, StoredSilence } from "./rule-store.ts";

/** `document` is the JSON of the row, `storms` that of a channel's storms. */
export const ruleTables = `
  CREATE TABLE rule (id TEXT PRIMARY KEY, revision INTEGER NOT NULL, document TEXT NOT NULL) STRICT;
  CREATE TABLE channel (
    id TEXT PRIMARY KEY,
    sent_at INTEGER NOT NULL,
    document TEXT NOT NULL,
    revision INTEGER NOT NULL,
    storms TEXT NOT NULL
  ) STRICT;
  CREATE TABLE silence (id TEXT PRIMARY KEY, until INTEGER NOT NULL, document TEXT NOT NULL) STRICT;
`;

/** Rules, channels and silences in the SQLite file of the service. */
export function createSqliteRuleStore(db: DatabaseSync, commits: GroupCommit): RuleStore {
  const insertRule = db.prepare("INSERT INTO rule SELECT ?, 1, ? WHERE (SELECT count(*) FROM rule) < ?");
  const findRule = db.prepare("SELECT document FROM rule WHERE id = ?");
  const changeRule = db.prepare(
    "UPDATE rule SET revision = ?1, document = ?2 WHERE id = ?3 AND revision = ?1 - 1",
  );
  const listRules = db.prepare("SELECT document FROM rule WHERE id > ? ORDER BY id LIMIT ?");
  const removeRule = db.prepare("DELETE FROM rule WHERE id = ?");
  const insertChannel = db.prepare(
    "INSERT INTO channel SELECT ?, 0, ?, 1, '{}' WHERE (SELECT count(*) FROM channel) < ?",
  );
  const findChannel = db.prepare("SELECT sent_at, storms, revision, document FROM channel WHERE id = ?");
  const changeChannel = db.prepare(
    "UPDATE channel SET revision = ?1, document = ?2 WHERE id = ?3 AND revision = ?1 - 1",
  );
  const listChannels = db.prepare(
    "SELECT sent_at, storms, revision, document FROM channel WHERE id > ? ORDER BY id LIMIT ?",
  );
  const noteSent = db.prepare("UPDATE channel SET sent_at = ?, storms = ? WHERE id = ?");
  const removeChannel = db.prepare("DELETE FROM channel WHERE id = ?");
  const insertSilence = db.prepare(
    "INSERT INTO silence SELECT ?, ?, ? WHERE (SELECT count(*) FROM silence) < ?",
  );
  const listSilences = db.prepare("SELECT document FROM silence WHERE id > ? ORDER BY id LIMIT ?");
  const removeSilence = db.prepare("DELETE FROM silence WHERE id = ?");
  const removeEnded = db.prepare("DELETE FROM silence WHERE until < ?");
  const count = db.prepare(`SELECT (SELECT count(*) FROM rule) AS rules,
    (SELECT count(*) FROM channel) AS channels, (SELECT count(*) FROM silence) AS silences`);
  const edition = (row: string, table: string) =>
    db.prepare(`SELECT group_concat(row) AS edition FROM (SELECT ${row} AS row FROM ${table} ORDER BY id)`);
  const editions = {
    rules: edition("id || ' ' || revision", "rule"),
    channels: edition("id || ' ' || revision || ' ' || sent_at", "channel"),
    silences: edition("id", "silence"),
  };

  return {
    insertRule: (rule, most, signal) =>
      commits.run(() => insertRule.run(rule.id, JSON.stringify(rule), most).changes === 1, signal),
    findRule: unlessAborted((id) => findRule.all(id).map(storedRule).at(0) ?? null),
    changeRule: (rule, signal) =>
      commits.run(() => changeRule.run(rule.revision, JSON.stringify(rule), rule.id).changes === 1, signal),
    listRules: unlessAborted(({ after = "", limit }) => listRules.all(after, limit).map(storedRule)),
    removeRule: (id, signal) => commits.run(() => removeRule.run(id).changes === 1, signal),
    insertChannel: (channel, most, signal) =>
      commits.run(() => insertChannel.run(channel.id, JSON.stringify(channel), most).changes === 1, signal),
    findChannel: unlessAborted((id) => findChannel.all(id).map(storedChannel).at(0) ?? null),
    changeChannel: (channel, signal) =>
      commits.run(
        () => changeChannel.run(channel.revision, JSON.stringify(channel), channel.id).changes === 1,
        signal,
      ),
    listChannels: unlessAborted(({ after = "", limit }) => listChannels.all(after, limit).map(storedChannel)),
    noteSent: (id, { sent_at, storms }, signal) =>
      commits.run(() => void noteSent.run(sent_at, JSON.stringify(storms), id), signal),
    removeChannel: (id, signal) => commits.run(() => removeChannel.run(id).changes === 1, signal),
    insertSilence: (silence, most, signal) =>
      commits.run(
        () => insertSilence.run(silence.id, silence.until, JSON.stringify(silence), most).changes === 1,
        signal,
      ),
    listSilences: unlessAborted(({ after = "", limit }) => listSilences.all(after, limit).map(storedSilence)),
    removeSilence: (id, signal) => commits.run(() => removeSilence.run(id).changes === 1, signal),
    removeEnded: (before, signal) => commits.run(() => void removeEnded.run(before), signal),
    editionOf: unlessAborted((kind) => String(editions[kind].get()?.edition ?? "")),
    // A limit is part of the statement that inserts.
    correctCounts: async () => undefined,
    count: unlessAborted(() => count.get() as Record<"rules" | "channels" | "silences", number>),
  };
}

/** Trusts the JSON: only this adapter writes the tables. */
function storedRule({ document }: Record<string, unknown>): StoredRule {
  return JSON.parse(String(document));
}

function storedSilence({ document }: Record<string, unknown>): StoredSilence {
  return JSON.parse(String(document));
}

function storedChannel({ sent_at, storms, revision, document }: Record<string, unknown>): StoredChannel {
  const noted = { sent_at: Number(sent_at), storms: JSON.parse(String(storms)), revision: Number(revision) };
  return { ...JSON.parse(String(document)), ...noted };
}
