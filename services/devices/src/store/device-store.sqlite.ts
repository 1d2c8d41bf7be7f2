import type { DatabaseSync, StatementSync } from "node:sqlite";
import { firmwareVersion, silentHours } from "@devmesh/contracts/model/fleet";
import { labelsOf } from "@devmesh/contracts/model/labels";
import { GroupCommit } from "@devmesh/store/group-commit";
import { type Migration, openSqlite, unlessAborted } from "@devmesh/store/sqlite";
import type { PendingOperation } from "../pending-operation.ts";
import type { DeviceDocument, DeviceStore, ListedDevice, StoredDevice } from "./device-store.ts";

/**
 * Documents have a separate table: a filter and an update of presence touch narrow rows only. `mark` is the JSON of
 * the pending operation; `mark_kind` and `mark_token` repeat its members for comparison.
 */
const migrations: readonly Migration[] = [
  `
  CREATE TABLE devices (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    name TEXT,
    labels TEXT,
    firmware TEXT,
    revision INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    last_seen INTEGER,
    online INTEGER NOT NULL DEFAULT 0,
    hidden INTEGER NOT NULL,
    mark_kind TEXT,
    mark_token TEXT,
    mark TEXT
  ) STRICT;
  CREATE INDEX devices_marked ON devices (id) WHERE mark IS NOT NULL;
  CREATE INDEX devices_online ON devices (id) WHERE online = 1;
  CREATE INDEX devices_fleet ON devices (firmware, online, last_seen, created_at) WHERE hidden = 0;
  CREATE TABLE documents (
    position INTEGER PRIMARY KEY REFERENCES devices ON DELETE CASCADE,
    acl TEXT NOT NULL,
    shadow TEXT NOT NULL
  ) STRICT;
  `,
];

/** Whether the text of `:filter` is in the id, the name or a label of a device. */
const matching = `(instr(id, :filter) OR instr(name, :filter)
  OR EXISTS (SELECT 1 FROM json_each(labels) WHERE instr(value, :filter)))`;

/** How many devices are offline since before the time `:before_<nth>`. */
function silentSince(nth: number): string {
  return `sum(online = 0 AND coalesce(last_seen, created_at) < :before_${nth})`;
}

/** The statements of the adapter, by purpose; exported so that a test can ask SQLite for their plans. */
export const deviceQueries = {
  owner: "SELECT mark_kind FROM devices WHERE id = ?",
  insert: `INSERT INTO devices (id, name, labels, firmware, revision, created_at, hidden, mark_kind, mark_token, mark)
    VALUES (:id, :name, :labels, :firmware, 1, :created_at, :hidden, :mark_kind, :mark_token, :mark)`,
  insertDocument: "INSERT INTO documents (position, acl, shadow) VALUES (?, ?, ?)",
  find: `SELECT devices.position, id, name, revision, created_at, last_seen, acl, shadow
    FROM devices JOIN documents USING (position) WHERE id = ? AND hidden = 0`,
  has: "SELECT 1 FROM devices WHERE id = ? AND hidden = 0",
  replace: `UPDATE devices SET name = :name, labels = :labels, firmware = :firmware, revision = revision + 1
    WHERE id = :id AND revision = :revision AND hidden = 0 RETURNING position`,
  replaceDocument: "UPDATE documents SET acl = ?, shadow = ? WHERE position = ?",
  list: `SELECT position, id FROM devices WHERE position > :after AND hidden = 0
    ORDER BY position LIMIT :limit`,
  listNewest: `SELECT position, id FROM devices WHERE position < :after AND hidden = 0
    ORDER BY position DESC LIMIT :limit`,
  listFiltered: `SELECT position, id FROM devices WHERE position > :after AND hidden = 0 AND ${matching}
    ORDER BY position LIMIT :limit`,
  listNewestFiltered: `SELECT position, id FROM devices WHERE position < :after AND hidden = 0 AND ${matching}
    ORDER BY position DESC LIMIT :limit`,
  // Both counts read an index, which takes a fraction of reading the rows.
  count: `SELECT (SELECT count(*) FROM devices)
    - (SELECT count(*) FROM devices WHERE mark IS NOT NULL AND hidden = 1) AS visible`,
  countByFirmware: `SELECT firmware, count(*) AS devices, ${silentHours.map((_, nth) => `${silentSince(nth)} AS silent_${nth}`).join(", ")}
    FROM devices WHERE hidden = 0 GROUP BY firmware`,
  recordPresence: `UPDATE devices SET online = :online, last_seen = max(coalesce(last_seen, 0), :seen_at)
    WHERE id = :id`,
  listOnline: "SELECT id FROM devices WHERE online = 1",
  beginOperation: `UPDATE devices SET hidden = :hidden, mark_kind = :mark_kind, mark_token = :mark_token, mark = :mark
    WHERE id = :id AND coalesce(mark_kind, '') IN (SELECT value FROM json_each(:from))`,
  replaceOperation: `UPDATE devices SET hidden = :hidden, mark_kind = :mark_kind, mark_token = :next_token, mark = :mark
    WHERE id = :id AND mark_token = :token`,
  remove: "DELETE FROM devices WHERE id = ? AND mark_token = ?",
  listOperations: "SELECT id, mark FROM devices WHERE mark IS NOT NULL",
} as const;

type Queries = { readonly [Q in keyof typeof deviceQueries]: StatementSync };

/**
 * Devices in a SQLite file (ADR 3). Each write is on the disk when it resolves; writes of concurrent calls share a
 * commit. Throws what `openSqlite` throws.
 */
export function createSqliteDeviceStore(path: string): DeviceStore {
  const sqlite = openSqlite(path, { migrations });
  const { db } = sqlite;
  const commits = new GroupCommit(db);
  const queries = prepareAll(db);

  return {
    exclusive: true,

    insert(device, operation, signal) {
      return commits.run(() => {
        const owner = queries.owner.get(device.id);
        if (owner) return owner.mark_kind === "deleting" ? "being_deleted" : "exists";
        const { id, name, created_at } = device;
        const labels = labelsColumn(device);
        const { lastInsertRowid } = queries.insert.run({
          id,
          name,
          labels,
          firmware: firmwareVersion(device.shadow.reported),
          created_at,
          ...operationColumns(operation),
        });
        queries.insertDocument.run(
          lastInsertRowid,
          JSON.stringify(device.acl),
          JSON.stringify(device.shadow),
        );
        return "inserted";
      }, signal);
    },

    find: unlessAborted((id) => {
      const row = queries.find.get(id);
      return row ? storedDevice(row) : null;
    }),

    has: unlessAborted((id) => queries.has.get(id) !== undefined),

    replace(device, revision, signal) {
      const acl = JSON.stringify(device.acl);
      const shadow = JSON.stringify(device.shadow);
      const { id, name } = device;
      const labels = labelsColumn(device);
      const firmware = firmwareVersion(device.shadow.reported);
      return commits.run(() => {
        const replaced = queries.replace.get({ id, name, labels, firmware, revision });
        if (!replaced) return false;
        queries.replaceDocument.run(acl, shadow, replaced.position as number);
        return true;
      }, signal);
    },

    list: unlessAborted(({ newestFirst = false, after, filter = "", limit }) => {
      if (after !== undefined && !/^\d{1,15}$/.test(after)) return null;
      const range = { after: Number(after ?? (newestFirst ? Number.MAX_SAFE_INTEGER : 0)), limit };
      const [whole, filtered] = newestFirst
        ? [queries.listNewest, queries.listNewestFiltered]
        : [queries.list, queries.listFiltered];
      const rows = filter === "" ? whole.all(range) : filtered.all({ ...range, filter });
      return rows.map((row): ListedDevice => ({ position: String(row.position), id: row.id as string }));
    }),

    count: unlessAborted(() => queries.count.get()?.visible as number),

    countByFirmware: unlessAborted((times) => {
      const before = Object.fromEntries(times.map((time, nth) => [`before_${nth}`, time]));
      return queries.countByFirmware.all(before).map((row) => ({
        version: row.firmware as string | null,
        devices: row.devices as number,
        silent: times.map((_, nth) => row[`silent_${nth}`] as number),
      }));
    }),

    findAll: unlessAborted((ids) =>
      ids.flatMap((id) => {
        const row = queries.find.get(id);
        return row ? [storedDevice(row)] : [];
      }),
    ),

    recordPresence(reports, signal) {
      return commits.run(() => {
        for (const { id, online, seen_at } of reports) {
          queries.recordPresence.run({ id, online: online ? 1 : 0, seen_at });
        }
      }, signal);
    },

    listOnline: unlessAborted(() => queries.listOnline.all().map((row) => row.id as string)),

    beginOperation(id, from, operation, signal) {
      const kinds = JSON.stringify(from.map((kind) => kind ?? ""));
      return commits.run(
        () => queries.beginOperation.run({ id, from: kinds, ...operationColumns(operation) }).changes === 1,
        signal,
      );
    },

    replaceOperation(id, token, operation, signal) {
      const { mark_token: next_token, ...columns } = operationColumns(operation);
      return commits.run(
        () => queries.replaceOperation.run({ id, token, next_token, ...columns }).changes === 1,
        signal,
      );
    },

    remove(id, token, signal) {
      return commits.run(() => queries.remove.run(id, token).changes === 1, signal);
    },

    listOperations: unlessAborted(() =>
      queries.listOperations.all().map((row) => ({
        id: row.id as string,
        operation: JSON.parse(row.mark as string) as PendingOperation,
      })),
    ),

    ping: unlessAborted(() => void queries.has.get("")),

    async close() {
      commits.flush();
      sqlite.close();
    },
  };
}

function prepareAll(db: DatabaseSync): Queries {
  const prepared = Object.entries(deviceQueries).map(([purpose, sql]) => [purpose, db.prepare(sql)]);
  return Object.fromEntries(prepared) as Queries;
}

function labelsColumn(device: DeviceDocument): string | null {
  const labels = labelsOf(device.shadow.tags);
  return labels.length === 0 ? null : JSON.stringify(labels);
}

function operationColumns(operation: PendingOperation | null) {
  return {
    hidden: operation !== null && operation.kind !== "rotating" ? 1 : 0,
    mark_kind: operation?.kind ?? null,
    mark_token: operation?.token ?? null,
    mark: operation === null ? null : JSON.stringify(operation),
  };
}

/** Trusts the JSON: only this adapter writes the table. */
function storedDevice(row: Record<string, unknown>): StoredDevice {
  return {
    id: row.id as string,
    name: row.name as string | null,
    acl: JSON.parse(row.acl as string),
    shadow: JSON.parse(row.shadow as string),
    created_at: row.created_at as number,
    last_seen: row.last_seen as number | null,
    revision: row.revision as number,
    position: String(row.position),
  };
}
