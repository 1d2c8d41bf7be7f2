import { createSqliteLeases } from "@devmesh/store/leases.sqlite";
import { openSqlite, unlessAborted } from "@devmesh/store/sqlite";
import type { StoredWebhook, WebhookStore } from "./webhook-store.ts";

/** `document` is the JSON of the webhook. */
const migrations = [
  `CREATE TABLE webhook (
    id TEXT PRIMARY KEY,
    revision INTEGER NOT NULL,
    document TEXT NOT NULL
  ) STRICT;`,
];

/** Opens the file of the service. @throws Error with one clear sentence when another process holds it */
export function openSqliteWebhookStore(path: string): WebhookStore {
  const { db, close } = openSqlite(path, { migrations });
  const insert = db.prepare(
    `INSERT INTO webhook (id, revision, document)
      SELECT :id, :revision, :document WHERE (SELECT count(*) FROM webhook) < :most`,
  );
  const find = db.prepare("SELECT document FROM webhook WHERE id = ?");
  const list = db.prepare("SELECT document FROM webhook ORDER BY id");
  const change = db.prepare(
    "UPDATE webhook SET revision = :revision, document = :document WHERE id = :id AND revision = :revision - 1",
  );
  const remove = db.prepare("DELETE FROM webhook WHERE id = ?");
  return {
    insert: unlessAborted((webhook, most) => insert.run({ ...rowOf(webhook), most }).changes === 1),
    find: unlessAborted((id) => find.all(id).map(storedWebhook).at(0) ?? null),
    list: unlessAborted(() => list.all().map(storedWebhook)),
    change: unlessAborted((webhook) => change.run(rowOf(webhook)).changes === 1),
    remove: unlessAborted((id) => remove.run(id).changes === 1),
    // The limit is part of the statement that inserts.
    correctCounts: async () => undefined,
    leases: createSqliteLeases(),
    ping: unlessAborted(() => void find.get("")),
    close: async () => close(),
  };
}

function rowOf(webhook: StoredWebhook) {
  return { id: webhook.id, revision: webhook.revision, document: JSON.stringify(webhook) };
}

/** Trusts the JSON: only this adapter writes the table. */
function storedWebhook(row: Record<string, unknown>): StoredWebhook {
  return JSON.parse(String(row.document));
}
