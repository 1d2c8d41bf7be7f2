import { DatabaseSync } from "node:sqlite";
import type { Caller } from "./key-check.ts";

/** What the services of the peers read. */
export interface PeerStore {
  readDevice(id: string): Record<string, unknown> | null;
  /** By the digest of a key. */
  readKey(digest: string): Caller | null;
}

/** Writes the file with one device and one key. */
export function createPeerStore(path: string, device: { readonly id: string }, keyDigest: string): void {
  const db = new DatabaseSync(path);
  db.exec(`
    PRAGMA journal_mode = WAL;
    CREATE TABLE devices (id TEXT PRIMARY KEY, document TEXT NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE keys (digest TEXT PRIMARY KEY, key_id TEXT NOT NULL) STRICT, WITHOUT ROWID`);
  db.prepare("INSERT INTO devices VALUES (?, ?)").run(device.id, JSON.stringify(device));
  db.prepare("INSERT INTO keys VALUES (?, ?)").run(keyDigest, "bench");
  db.close();
}

/** Opens the file that `createPeerStore` has written. */
export function openPeerStore(path: string): PeerStore {
  const db = new DatabaseSync(path);
  const device = db.prepare("SELECT document FROM devices WHERE id = ?");
  const key = db.prepare("SELECT key_id FROM keys WHERE digest = ?");
  return {
    readDevice(id) {
      const row = device.get(id);
      return row === undefined ? null : JSON.parse(String(row.document));
    },
    readKey(digest) {
      const row = key.get(digest);
      return row === undefined ? null : { keyId: String(row.key_id) };
    },
  };
}
