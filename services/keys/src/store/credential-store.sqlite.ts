import type { DatabaseSync } from "node:sqlite";
import { maxKnownClientIds } from "@devmesh/contracts/keys";
import { GroupCommit } from "@devmesh/store/group-commit";
import { unlessAborted } from "@devmesh/store/sqlite";
import type { CredentialStore, SeenClient, StoredCredentials } from "./credential-store.ts";

interface Row {
  readonly device_id: string;
  readonly epoch: string | null;
  readonly token_digest: Uint8Array;
  readonly token_sealed: Uint8Array;
  readonly public_key_digest: Uint8Array;
  readonly public_key_sealed: Uint8Array;
}

/** Concurrent writes share a commit and keep their order (ADR 13). */
export interface SqliteCredentialStore extends CredentialStore {
  /** Commits the writes that wait. */
  flush(): void;
}

/** Device credentials in the tables of `key-store.sqlite.ts`. */
export function createSqliteCredentialStore(db: DatabaseSync): SqliteCredentialStore {
  const insert = db.prepare(`
    INSERT INTO device_credentials
      (device_id, epoch, token_digest, token_sealed, public_key_digest, public_key_sealed)
    VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (device_id) DO NOTHING`);
  const find = db.prepare("SELECT * FROM device_credentials WHERE device_id = ?");
  const findByPublicKey = db.prepare("SELECT device_id FROM device_credentials WHERE public_key_digest = ?");
  const replaceToken = db.prepare(`
    UPDATE device_credentials SET token_digest = ?, token_sealed = ? WHERE device_id = ? AND epoch = ?`);
  const replacePublicKey = db.prepare(`
    UPDATE device_credentials SET public_key_digest = ?, public_key_sealed = ? WHERE device_id = ? AND epoch = ?`);
  const revoke = db.prepare(`
    UPDATE device_credentials
    SET epoch = NULL, token_digest = NULL, token_sealed = NULL, public_key_digest = NULL, public_key_sealed = NULL
    WHERE device_id = ?`);
  const clientIds = db.prepare("SELECT client_id FROM mqtt_client WHERE device_id = ? ORDER BY client_id");
  const forget = db.prepare("DELETE FROM device_credentials WHERE device_id = ? AND epoch IS NULL");
  const findLogin = db.prepare(`
    SELECT held.epoch, held.token_digest, seen.seen_at FROM device_credentials AS held
    LEFT JOIN mqtt_client AS seen ON seen.device_id = held.device_id AND seen.client_id = ?
    WHERE held.device_id = ? AND held.epoch IS NOT NULL`);
  const recordClient = db.prepare(`
    INSERT INTO mqtt_client (device_id, client_id, seen_at, generated)
    SELECT device_id, ?, ?, ? FROM device_credentials WHERE device_id = ? AND epoch = ? AND token_digest = ?
    ON CONFLICT (device_id, client_id) DO UPDATE SET seen_at = excluded.seen_at`);
  const dropClients = db.prepare(`
    DELETE FROM mqtt_client WHERE device_id = ?1 AND client_id IN (
      SELECT client_id FROM mqtt_client WHERE device_id = ?1
      ORDER BY generated, seen_at DESC LIMIT -1 OFFSET ${maxKnownClientIds})`);

  const commits = new GroupCommit(db);

  function record(client: SeenClient): boolean {
    const { deviceId, epoch, tokenDigest, clientId, at, generated } = client;
    const { changes } = recordClient.run(clientId, at, generated ? 1 : 0, deviceId, epoch, tokenDigest);
    if (changes === 0) return false;
    dropClients.run(deviceId);
    return true;
  }

  return {
    flush: () => commits.flush(),
    issue: ({ deviceId, epoch, token, publicKey }, signal) =>
      commits.run(() => {
        insert.run(deviceId, epoch, token.digest, token.sealed, publicKey.digest, publicKey.sealed);
        return credentialsOf(find.get(deviceId)) ?? "revoked";
      }, signal),
    find: unlessAborted((deviceId) => credentialsOf(find.get(deviceId))),
    findByPublicKey: unlessAborted((digest) => {
      const row = findByPublicKey.get(digest);
      return row === undefined ? null : { deviceId: row.device_id as string };
    }),
    isKnown: unlessAborted((deviceId) => find.get(deviceId) !== undefined),
    replace: (deviceId, epoch, secrets, signal) =>
      commits.run(() => {
        const [statement, { digest, sealed }] =
          "token" in secrets ? [replaceToken, secrets.token] : [replacePublicKey, secrets.publicKey];
        return statement.run(digest, sealed, deviceId, epoch).changes === 1;
      }, signal),
    revoke: (deviceId, signal) =>
      commits.run(() => {
        revoke.run(deviceId);
        return clientIds.all(deviceId).map(({ client_id }) => client_id as string);
      }, signal),
    forget: (deviceId, signal) => commits.run(() => void forget.run(deviceId), signal),
    findLogin: unlessAborted((deviceId, clientId) => {
      const row = findLogin.get(clientId, deviceId);
      if (row === undefined) return null;
      return {
        epoch: row.epoch as string,
        tokenDigest: row.token_digest as Uint8Array,
        clientSeenAt: row.seen_at as number | null,
      };
    }),
    recordClient: (client, signal) => commits.run(() => record(client), signal),
  };
}

function credentialsOf(found: Record<string, unknown> | undefined): StoredCredentials | null {
  if (found === undefined) return null;
  const row = found as unknown as Row;
  if (row.epoch === null) return null;
  return {
    deviceId: row.device_id,
    epoch: row.epoch,
    token: { digest: row.token_digest, sealed: row.token_sealed },
    publicKey: { digest: row.public_key_digest, sealed: row.public_key_sealed },
  };
}
