import type { DatabaseSync } from "node:sqlite";
import { inTransaction } from "@devmesh/store/sqlite";
import type { ApiKeyStore, StoredApiKey } from "./api-key-store.ts";

interface Row {
  readonly id: string;
  readonly digest: Uint8Array;
  readonly sealed: Uint8Array;
  readonly device_id: string | null;
  readonly epoch: string | null;
  readonly name: string | null;
  readonly created_at: number;
  readonly last_used: number | null;
  readonly expires_at: number | null;
}

/** Master and device keys in the tables of `key-store.sqlite.ts`. */
export function createSqliteApiKeyStore(db: DatabaseSync): ApiKeyStore {
  const insert = db.prepare(`
    INSERT INTO api_key (id, digest, sealed, device_id, epoch, name, created_at, last_used, expires_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (digest) DO NOTHING`);
  const findByDigest = db.prepare("SELECT * FROM api_key WHERE digest = ?");
  const findById = db.prepare("SELECT * FROM api_key WHERE id = ?");
  const list = db.prepare("SELECT * FROM api_key WHERE id > ? ORDER BY id LIMIT ?");
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

  function store(key: StoredApiKey): boolean {
    const { id, digest, sealed, device, name, createdAt, lastUsed, expiresAt } = key;
    const { changes } = insert.run(
      id,
      digest,
      sealed,
      device?.id ?? null,
      device?.epoch ?? null,
      name,
      createdAt,
      lastUsed,
      expiresAt,
    );
    return changes === 1;
  }

  return {
    async insert(key, signal) {
      signal.throwIfAborted();
      return store(key);
    },
    async insertMasterIfNone(key, now, signal) {
      signal.throwIfAborted();
      const valid = apiKeyOf(validMasters.get(now, 1));
      if (valid === null) store(key);
      return valid ?? key;
    },
    async findByDigest(digest, signal) {
      signal.throwIfAborted();
      return apiKeyOf(findByDigest.get(digest));
    },
    async list(after, limit, signal) {
      signal.throwIfAborted();
      return list.all(after ?? "", limit).flatMap((row) => apiKeyOf(row) ?? []);
    },
    async delete(id, now, signal) {
      signal.throwIfAborted();
      return inTransaction(db, () => {
        const key = apiKeyOf(findById.get(id));
        if (key === null) return "not_found";
        const valid = key.expiresAt === null || key.expiresAt > now;
        if (key.device === null && valid && validMasters.all(now, 2).length < 2) return "last_master_key";
        deleteById.run(id);
        return "deleted";
      });
    },
    async listIdsOfDevice(deviceId, signal) {
      signal.throwIfAborted();
      return idsOfDevice.all(deviceId).map(({ id }) => id as string);
    },
    async deleteAll(ids, signal) {
      signal.throwIfAborted();
      inTransaction(db, () => {
        for (const id of ids) deleteById.run(id);
      });
    },
    async deleteOrphans(signal) {
      signal.throwIfAborted();
      return Number(deleteOrphans.run().changes);
    },
    async recordUses(uses, signal) {
      signal.throwIfAborted();
      inTransaction(db, () => {
        for (const { id, at } of uses) recordUse.run(at, id);
      });
    },
  };
}

function apiKeyOf(found: Record<string, unknown> | undefined): StoredApiKey | null {
  if (found === undefined) return null;
  const row = found as unknown as Row;
  return {
    id: row.id,
    digest: row.digest,
    sealed: row.sealed,
    device: row.device_id === null || row.epoch === null ? null : { id: row.device_id, epoch: row.epoch },
    name: row.name,
    createdAt: row.created_at,
    lastUsed: row.last_used,
    expiresAt: row.expires_at,
  };
}
