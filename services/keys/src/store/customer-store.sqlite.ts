import type { DatabaseSync } from "node:sqlite";
import { unlessAborted } from "@devmesh/store/sqlite";
import type { CustomerStore, StoredCustomer } from "./customer-store.ts";

/** Customers in the tables of `key-store.sqlite.ts`. */
export function createSqliteCustomerStore(db: DatabaseSync): CustomerStore {
  const insert = db.prepare(`
    INSERT INTO customer
      (id, email, token_digest, token_sealed, meta, created_at, updated_at, confirmed_at, invited_at)
    VALUES
      (:id, :email, :token_digest, :token_sealed, :meta, :created_at, :updated_at, :confirmed_at, :invited_at)
    ON CONFLICT (email) DO NOTHING`);
  const find = db.prepare("SELECT * FROM customer WHERE id = ?");
  const findByTokenDigest = db.prepare("SELECT * FROM customer WHERE token_digest = ?");
  const recordInvitation = db.prepare("UPDATE customer SET invited_at = ? WHERE email = ? RETURNING *");
  const isConfirmed = db.prepare("SELECT 1 FROM customer WHERE email = ? AND confirmed_at IS NOT NULL");
  const confirm = db.prepare("UPDATE customer SET confirmed_at = coalesce(confirmed_at, ?) WHERE id = ?");
  const replaceMeta = db.prepare("UPDATE customer SET meta = ?, updated_at = ? WHERE id = ? RETURNING *");
  const list = db.prepare("SELECT * FROM customer WHERE id > ? ORDER BY id LIMIT ?");
  const deleteById = db.prepare("DELETE FROM customer WHERE id = ?");
  const unconfirmed = "confirmed_at IS NULL AND invited_at <= ?";
  const count = db.prepare(`SELECT (SELECT count(*) FROM customer)
    - (SELECT count(*) FROM customer WHERE ${unconfirmed}) AS customers`);
  const deleteUnconfirmed = db.prepare(
    `DELETE FROM customer WHERE id = (SELECT id FROM customer WHERE ${unconfirmed} LIMIT 1) RETURNING id`,
  );
  const deleteUnconfirmedOf = db.prepare(
    `DELETE FROM customer WHERE email = ? AND ${unconfirmed} RETURNING id`,
  );

  return {
    insert: unlessAborted((customer) => insert.run({ ...customer }).changes === 1),
    find: unlessAborted((id) => customerOf(find.get(id))),
    findByTokenDigest: unlessAborted((digest) => customerOf(findByTokenDigest.get(digest))),
    recordInvitation: unlessAborted((email, at) => customerOf(recordInvitation.get(at, email))),
    isConfirmed: unlessAborted((email) => isConfirmed.get(email) !== undefined),
    confirm: unlessAborted((id, at) => confirm.run(at, id).changes === 1),
    replaceMeta: unlessAborted((id, meta, at) => customerOf(replaceMeta.get(meta, at, id))),
    list: unlessAborted((after, limit) =>
      list.all(after ?? "", limit).flatMap((row) => customerOf(row) ?? []),
    ),
    count: unlessAborted((until) => Number(count.get(until)?.customers)),
    delete: unlessAborted((id) => deleteById.run(id).changes === 1),
    deleteUnconfirmed: unlessAborted((until) => idOf(deleteUnconfirmed.get(until))),
    deleteUnconfirmedOf: unlessAborted((email, until) => idOf(deleteUnconfirmedOf.get(email, until))),
  };
}

function customerOf(row: Record<string, unknown> | undefined): StoredCustomer | null {
  return row === undefined ? null : ({ ...row } as unknown as StoredCustomer);
}

function idOf(row: Record<string, unknown> | undefined): string | null {
  return row === undefined ? null : String(row.id);
}
