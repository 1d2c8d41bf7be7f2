import type { DatabaseSync } from "node:sqlite";
import type { CustomerStore, StoredCustomer } from "./customer-store.ts";

interface Row {
  readonly id: string;
  readonly email: string;
  readonly token_digest: Uint8Array;
  readonly token_sealed: Uint8Array;
  readonly meta: string;
  readonly created_at: number;
  readonly updated_at: number;
  readonly confirmed_at: number | null;
  readonly invited_at: number;
}

/** Customers in the tables of `key-store.sqlite.ts`. */
export function createSqliteCustomerStore(db: DatabaseSync): CustomerStore {
  const insert = db.prepare(`
    INSERT INTO customer
      (id, email, token_digest, token_sealed, meta, created_at, updated_at, confirmed_at, invited_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (email) DO NOTHING`);
  const find = db.prepare("SELECT * FROM customer WHERE id = ?");
  const findByTokenDigest = db.prepare("SELECT * FROM customer WHERE token_digest = ?");
  const recordInvitation = db.prepare("UPDATE customer SET invited_at = ? WHERE email = ? RETURNING *");
  const isConfirmed = db.prepare("SELECT 1 FROM customer WHERE email = ? AND confirmed_at IS NOT NULL");
  const confirm = db.prepare("UPDATE customer SET confirmed_at = coalesce(confirmed_at, ?) WHERE id = ?");
  const replaceMeta = db.prepare("UPDATE customer SET meta = ?, updated_at = ? WHERE id = ? RETURNING *");
  const list = db.prepare("SELECT * FROM customer WHERE id > ? ORDER BY id LIMIT ?");
  const deleteById = db.prepare("DELETE FROM customer WHERE id = ?");
  const unconfirmed = "confirmed_at IS NULL AND invited_at <= ?";
  const deleteUnconfirmed = db.prepare(
    `DELETE FROM customer WHERE id = (SELECT id FROM customer WHERE ${unconfirmed} LIMIT 1) RETURNING *`,
  );
  const deleteUnconfirmedOf = db.prepare(
    `DELETE FROM customer WHERE email = ? AND ${unconfirmed} RETURNING *`,
  );

  return {
    async insert(customer, signal) {
      signal.throwIfAborted();
      const { changes } = insert.run(
        customer.id,
        customer.email,
        customer.tokenDigest,
        customer.sealedToken,
        customer.meta,
        customer.createdAt,
        customer.updatedAt,
        customer.confirmedAt,
        customer.invitedAt,
      );
      return changes === 1;
    },
    async find(id, signal) {
      signal.throwIfAborted();
      return customerOf(find.get(id));
    },
    async findByTokenDigest(digest, signal) {
      signal.throwIfAborted();
      return customerOf(findByTokenDigest.get(digest));
    },
    async recordInvitation(email, at, signal) {
      signal.throwIfAborted();
      return customerOf(recordInvitation.get(at, email));
    },
    async isConfirmed(email, signal) {
      signal.throwIfAborted();
      return isConfirmed.get(email) !== undefined;
    },
    async confirm(id, at, signal) {
      signal.throwIfAborted();
      return confirm.run(at, id).changes === 1;
    },
    async replaceMeta(id, meta, at, signal) {
      signal.throwIfAborted();
      return customerOf(replaceMeta.get(meta, at, id));
    },
    async list(after, limit, signal) {
      signal.throwIfAborted();
      return list.all(after ?? "", limit).flatMap((row) => customerOf(row) ?? []);
    },
    async delete(id, signal) {
      signal.throwIfAborted();
      return deleteById.run(id).changes === 1;
    },
    async deleteUnconfirmed(invitedUntil, signal) {
      signal.throwIfAborted();
      return customerOf(deleteUnconfirmed.get(invitedUntil))?.id ?? null;
    },
    async deleteUnconfirmedOf(email, invitedUntil, signal) {
      signal.throwIfAborted();
      return customerOf(deleteUnconfirmedOf.get(email, invitedUntil))?.id ?? null;
    },
  };
}

function customerOf(found: Record<string, unknown> | undefined): StoredCustomer | null {
  if (found === undefined) return null;
  const row = found as unknown as Row;
  return {
    id: row.id,
    email: row.email,
    tokenDigest: row.token_digest,
    sealedToken: row.token_sealed,
    meta: row.meta,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    confirmedAt: row.confirmed_at,
    invitedAt: row.invited_at,
  };
}
