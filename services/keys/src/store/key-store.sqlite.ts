import { createSqliteMailSlotStore } from "@devmesh/store/mail-slots.sqlite";
import { openSqlite, unlessAborted } from "@devmesh/store/sqlite";
import { createSqliteApiKeyStore } from "./api-key-store.sqlite.ts";
import { createSqliteCredentialStore } from "./credential-store.sqlite.ts";
import { createSqliteCustomerStore } from "./customer-store.sqlite.ts";
import type { KeyStore } from "./key-store.ts";
import { createSqliteSessionStore } from "./session-store.sqlite.ts";

const migrations = [
  `
  CREATE TABLE setting (
    name TEXT PRIMARY KEY,
    value BLOB NOT NULL
  ) STRICT;

  CREATE TABLE api_key (
    id TEXT PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,
    sealed BLOB NOT NULL,
    device_id TEXT,
    epoch TEXT,
    name TEXT,
    created_at INTEGER NOT NULL,
    last_used INTEGER,
    expires_at INTEGER,
    CHECK ((device_id IS NULL) = (epoch IS NULL))
  ) STRICT;
  CREATE INDEX api_key_of_device ON api_key (device_id) WHERE device_id IS NOT NULL;
  CREATE INDEX api_key_master ON api_key (id) WHERE device_id IS NULL;

  CREATE TABLE device_credentials (
    device_id TEXT PRIMARY KEY,
    -- NULL once the credentials are revoked, like the four columns after it.
    epoch TEXT,
    token_digest BLOB UNIQUE,
    token_sealed BLOB,
    public_key_digest BLOB UNIQUE,
    public_key_sealed BLOB
  ) STRICT;

  CREATE TABLE mqtt_client (
    device_id TEXT NOT NULL REFERENCES device_credentials ON DELETE CASCADE,
    client_id TEXT NOT NULL,
    seen_at INTEGER NOT NULL,
    generated INTEGER NOT NULL,
    PRIMARY KEY (device_id, client_id)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE customer (
    id TEXT PRIMARY KEY,
    email TEXT NOT NULL UNIQUE,
    token_digest BLOB NOT NULL UNIQUE,
    token_sealed BLOB NOT NULL,
    meta TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    confirmed_at INTEGER,
    invited_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX customer_unconfirmed ON customer (invited_at) WHERE confirmed_at IS NULL;

  CREATE TABLE mail_slot (
    window TEXT NOT NULL,
    taken_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX mail_slot_of_window ON mail_slot (window, taken_at);
  CREATE INDEX mail_slot_age ON mail_slot (taken_at);

  CREATE TABLE session (
    id TEXT PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,
    master_key_id TEXT NOT NULL,
    name TEXT,
    created_at INTEGER NOT NULL,
    last_used INTEGER,
    expires_at INTEGER NOT NULL
  ) STRICT;
  `,
] as const;

/** Opens the store. @throws Error with one clear sentence when another replica holds it or it cannot be written */
export function openSqliteKeyStore(path: string): KeyStore {
  const { db, close } = openSqlite(path, { migrations });
  const insertSetting = db.prepare("INSERT INTO setting (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING");
  const readSetting = db.prepare("SELECT value FROM setting WHERE name = ?");
  const credentials = createSqliteCredentialStore(db);
  return {
    apiKeys: createSqliteApiKeyStore(db),
    credentials,
    sessions: createSqliteSessionStore(db),
    customers: createSqliteCustomerStore(db),
    mailSlots: createSqliteMailSlotStore(db),
    putSettingIfAbsent: unlessAborted((name, value) => {
      insertSetting.run(name, value);
      return readSetting.get(name)?.value as Uint8Array;
    }),
    ping: unlessAborted(() => void readSetting.get("")),
    async close() {
      credentials.flush();
      close();
    },
  };
}
