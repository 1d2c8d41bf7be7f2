import type { DatabaseSync } from "node:sqlite";
import { inTransaction, unlessAborted } from "@devmesh/store/sqlite";
import type { ApiKeyStore, StoredApiKey } from "./api-key-store.ts";

/** Master and device keys in the tables of `key-store.sqlite.ts`. */
export function createSqliteApiKeyStore(db: DatabaseSync): ApiKeyStore {
  const insert = db.prepare(`
    INSERT INTO api_key (id, digest, sealed, device_id, epoch, name, created_at, last_used, expires_at)
    VALUES (:id, :digest, :sealed, :device_id, :epoch, :name, :created_at, :last_used, :expires_at)
    ON CONFLICT (digest) DO NOTHING`);
  const findByDigest = db.prepare("SELECT * FROM api_key WHERE digest = ?");
  const findById = db.prepare("SELECT * FROM api_key WHERE id = ?");
  const list = db.prepare("SELECT * FROM api_key WHERE id > ? ORDER BY id LIMIT ?");
  const count = db.prepare("SELECT count(*) AS keys FROM api_key");
  const validMasters = db.prepare(`
    SELECT * FROM api_key WHERE device_id IS NULL AND (expires_at IS NULL OR expires_at > ?) ORDER BY id LIMIT ?`);
  const deleteById = db.prepare("DELETE FROM api_key WHERE id = ?");
  const idsOfDevice = db.prepare("SELECT id FROM api_key WHERE device_id = ? ORDER BY id");
  const deleteOrphans = db.prepare(`
    DELETE FROM api_key WHERE device_id IS NOT NULL AND NOT EXISTS (
      SELECT 1 FROM device_credentials AS held
      WHERE held.device_id = api_key.device_id AND held.epoch = api_key.epoch)`);
  const recordUse = db.prepare(
    "UPDATE api_key SET last_used = ?1 WHERE id = ?2 AND coalesce(last_used, 0) < ?1",
  );

  return {
    insert: unlessAborted((key) => insert.run({ ...key }).changes === 1),
    insertMasterIfNone: unlessAborted((key, now) => {
      const valid = apiKeyOf(validMasters.get(now, 1));
      if (valid === null) insert.run({ ...key });
      return valid ?? key;
    }),
    find: unlessAborted((id) => apiKeyOf(findById.get(id))),
    findByDigest: unlessAborted((digest) => apiKeyOf(findByDigest.get(digest))),
    list: unlessAborted((after, limit) => list.all(after ?? "", limit).flatMap((row) => apiKeyOf(row) ?? [])),
    count: unlessAborted(() => Number(count.get()?.keys)),
    delete: unlessAborted((id, now) =>
      inTransaction(db, () => {
        const key = apiKeyOf(findById.get(id));
        if (key === null) return "not_found";
        const valid = key.expires_at === null || key.expires_at > now;
        if (key.device_id === null && valid && validMasters.all(now, 2).length < 2) return "last_master_key";
        deleteById.run(id);
        return "deleted";
      }),
    ),
    listIdsOfDevice: unlessAborted((deviceId) => idsOfDevice.all(deviceId).map(({ id }) => String(id))),
    deleteAll: unlessAborted((ids) =>
      inTransaction(db, () => {
        for (const id of ids) deleteById.run(id);
      }),
    ),
    deleteOrphans: unlessAborted(() => Number(deleteOrphans.run().changes)),
    recordUses: unlessAborted((uses) =>
      inTransaction(db, () => {
        for (const { id, at } of uses) recordUse.run(at, id);
      }),
    ),
  };
}

function apiKeyOf(row: Record<string, unknown> | undefined): StoredApiKey | null {
  return row === undefined ? null : ({ ...row } as unknown as StoredApiKey);
}
