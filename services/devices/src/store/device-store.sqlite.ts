import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite";
import { setImmediate as nextTurn } from "node:timers/promises";
import { maxFacetValues } from "@devmesh/contracts/model/device-facets";
import { firmwareVersion, silentHours } from "@devmesh/contracts/model/fleet";
import { labelsOf } from "@devmesh/contracts/model/labels";
import { GroupCommit } from "@devmesh/store/group-commit";
import { type Migration, openSqlite, unlessAborted } from "@devmesh/store/sqlite";
import type { PendingOperation } from "../pending-operation.ts";
import { boardsMigration, createSqliteBoardStore } from "./board-store.sqlite.ts";
import type {
  CountedCondition,
  DeviceDocument,
  DeviceStore,
  ListedDevice,
  StoredDevice,
} from "./device-store.ts";
import {
  cursorOf,
  type ListOrder,
  type ListPlace,
  type OrderedRange,
  placeOf,
  rangesAfter,
} from "./list-order.ts";

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
  // Triggers keep the index of labels: each statement that changes labels would have to.
  `
  CREATE INDEX devices_version ON devices (firmware) WHERE hidden = 0;
  CREATE TABLE device_labels (
    label TEXT NOT NULL,
    position INTEGER NOT NULL,
    PRIMARY KEY (label, position)
  ) STRICT, WITHOUT ROWID;
  INSERT OR IGNORE INTO device_labels SELECT value, position FROM devices, json_each(labels);
  CREATE TRIGGER devices_inserted AFTER INSERT ON devices BEGIN
    INSERT OR IGNORE INTO device_labels SELECT value, new.position FROM json_each(new.labels);
  END;
  CREATE TRIGGER devices_labelled AFTER UPDATE OF labels ON devices WHEN old.labels IS NOT new.labels BEGIN
    DELETE FROM device_labels
      WHERE label IN (SELECT value FROM json_each(old.labels)) AND position = old.position;
    INSERT OR IGNORE INTO device_labels SELECT value, new.position FROM json_each(new.labels);
  END;
  CREATE TRIGGER devices_removed AFTER DELETE ON devices BEGIN
    DELETE FROM device_labels
      WHERE label IN (SELECT value FROM json_each(old.labels)) AND position = old.position;
  END;
  `,
  // One row, so that a change compares one revision.
  `
  CREATE TABLE saved_views (
    revision INTEGER NOT NULL,
    views TEXT NOT NULL
  ) STRICT;
  INSERT INTO saved_views VALUES (0, '[]');
  `,
  "CREATE INDEX devices_last_seen ON devices (last_seen) WHERE hidden = 0;",
  boardsMigration,
  "ALTER TABLE devices ADD COLUMN delta_metadata INTEGER NOT NULL DEFAULT 1;",
];

/** How many devices are offline since before the time `:before_<nth>`. */
function silentSince(nth: number): string {
  return `sum(online = 0 AND coalesce(last_seen, created_at) < :before_${nth})`;
}

const documentColumns =
  "devices.position, id, name, revision, created_at, last_seen, delta_metadata, acl, shadow";

/** The statements of the adapter, by purpose; exported so that a test can ask SQLite for their plans. */
export const deviceQueries = {
  owner: "SELECT mark_kind FROM devices WHERE id = ?",
  insert: `INSERT INTO devices (id, name, labels, firmware, delta_metadata, revision, created_at, hidden, mark_kind,
    mark_token, mark) VALUES (:id, :name, :labels, :firmware, :delta_metadata, 1, :created_at, :hidden, :mark_kind,
    :mark_token, :mark)`,
  insertDocument: "INSERT INTO documents (position, acl, shadow) VALUES (?, ?, ?)",
  find: `SELECT ${documentColumns} FROM devices JOIN documents USING (position) WHERE id = ? AND hidden = 0`,
  findAll: `SELECT ${documentColumns} FROM devices JOIN documents USING (position)
    WHERE id IN (SELECT value FROM json_each(?)) AND hidden = 0`,
  has: "SELECT 1 FROM devices WHERE id = ? AND hidden = 0",
  labelsOf: "SELECT labels FROM devices WHERE id = ?",
  replace: `UPDATE devices SET name = :name, labels = :labels, firmware = :firmware, delta_metadata = :delta_metadata,
    revision = revision + 1
    WHERE id = :id AND revision = :revision AND hidden = 0 RETURNING position`,
  replaceDocument: "UPDATE documents SET acl = ?, shadow = ? WHERE position = ?",
  // Both counts read an index, which takes a fraction of reading the rows.
  count: `SELECT (SELECT count(*) FROM devices)
    - (SELECT count(*) FROM devices WHERE mark IS NOT NULL AND hidden = 1) AS visible`,
  countByFirmware: `SELECT firmware, count(*) AS devices, sum(online) AS online,
    ${silentHours.map((_, nth) => `${silentSince(nth)} AS silent_${nth}`).join(", ")}
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
  readViews: "SELECT revision, views FROM saved_views",
  replaceViews: "UPDATE saved_views SET views = :views, revision = revision + 1 WHERE revision = :revision",
} as const;

/** SQL of a condition and its parameters. */
interface ConditionSql {
  readonly where: string;
  readonly parameters: Record<string, SQLInputValue>;
}

/**
 * The condition of visible devices that meet `condition`, as terms over the columns of `devices`. `byRow`: rows are
 * read in their order, not in that of an index of visible devices, unless an index selects few.
 */
function conditionSql(condition: CountedCondition, { byRow = false } = {}): ConditionSql {
  const { words = [], noWords = [], labels = [], noLabels = [] } = condition;
  const parameters: Record<string, SQLInputValue> = {};
  const given = (value: SQLInputValue): string => {
    const name = `:given_${Object.keys(parameters).length}`;
    parameters[name] = value;
    return name;
  };
  const among = (values: readonly string[]) =>
    `IN (SELECT value FROM json_each(${given(JSON.stringify(values))}))`;
  const withWord = (word: string) => {
    const text = given(word);
    // Most labels need not be parsed: their JSON does not contain the word.
    const inJson = `instr(labels, ${given(JSON.stringify(word).slice(1, -1))})`;
    return `(instr(id, ${text}) OR coalesce(instr(name, ${text}), 0) OR (coalesce(${inJson}, 0)
      AND EXISTS (SELECT 1 FROM json_each(labels) WHERE instr(value, ${text}))))`;
  };
  const labelled = (label: string) => `IN (SELECT position FROM device_labels WHERE label = ${given(label)})`;
  const withVersion = (versions: readonly (string | null)[]) => {
    const known = versions.filter((version) => version !== null);
    if (known.length === 0) return "firmware IS NULL";
    const [only = ""] = known;
    // Of one version the index is in the order of the list.
    const isKnown =
      known.length === 1 ? `firmware IS ${given(only)}` : `coalesce(firmware ${among(known)}, 0)`;
    return known.length === versions.length ? isKnown : `(firmware IS NULL OR ${isKnown})`;
  };
  const silent = (since: number) => `(online = 0 AND coalesce(last_seen, created_at) < ${given(since)})`;

  const terms = [
    // The sign keeps SQLite from the partial indexes.
    byRow ? "+hidden = 0" : "hidden = 0",
    ...words.map(withWord),
    ...noWords.map((word) => `NOT ${withWord(word)}`),
    ...labels.map((label) => `devices.position ${labelled(label)}`),
    ...noLabels.map((label) => `devices.position NOT ${labelled(label)}`),
  ];
  const { versions, noVersions, online, silentSince, seenSince, ids, noIds = [] } = condition;
  if (versions !== undefined) terms.push(withVersion(versions));
  if (noVersions !== undefined && noVersions.length > 0) terms.push(`NOT ${withVersion(noVersions)}`);
  if (online !== undefined) terms.push(`online = ${online ? 1 : 0}`);
  if (silentSince !== undefined) terms.push(silent(silentSince));
  if (seenSince !== undefined) terms.push(`NOT ${silent(seenSince)}`);
  if (ids !== undefined) terms.push(`id ${among(ids)}`);
  if (noIds.length > 0) terms.push(`id NOT ${among(noIds)}`);
  return { where: terms.join(" AND "), parameters };
}

/** Whether rows are read for each device: then an index only makes them come in a slower order. */
function readsRows({ words, noWords, noIds }: CountedCondition): boolean {
  return [words, noWords, noIds].some((given = []) => given.length > 0);
}

/** Columns of a list, and those that it can be ordered by. */
const listedColumns = "position, id, created_at, firmware, labels, last_seen";
const orderedColumns = { version: "firmware", last_seen: "last_seen" } as const;

/** Statements that depend on a condition, by purpose; exported so that a test can ask SQLite for their plans. */
export const conditionalQueries = {
  list: (condition: CountedCondition, descending: boolean) => {
    const { where, parameters } = conditionSql(condition);
    const [beyond, order] = descending ? ["<", "DESC"] : [">", "ASC"];
    return {
      sql: `SELECT ${listedColumns} FROM devices WHERE position ${beyond} :after AND ${where}
        ORDER BY position ${order} LIMIT :limit`,
      parameters,
    };
  },
  /** A range of a list that is ordered by a column. */
  listRange: (
    condition: CountedCondition,
    { by, descending = false }: ListOrder & { readonly by: keyof typeof orderedColumns },
    range: OrderedRange,
  ) => {
    const { where, parameters } = conditionSql(condition);
    const column = orderedColumns[by];
    const [beyond, order] = descending ? ["<", "DESC"] : [">", "ASC"];
    const isOneValue = "value" in range;
    const terms = [where];
    if (isOneValue) {
      terms.push(range.value === null ? `${column} IS NULL` : `${column} = :value`);
      if (range.value !== null) parameters[":value"] = range.value;
      if (range.after !== null) terms.push(`position ${beyond} :after`);
      if (range.after !== null) parameters[":after"] = range.after;
    } else if (range.beyond === null) terms.push(`${column} IS NOT NULL`);
    else {
      terms.push(`${column} ${beyond} :value`);
      parameters[":value"] = range.beyond;
    }
    return {
      sql: `SELECT ${listedColumns} FROM devices WHERE ${terms.join(" AND ")}
        ORDER BY ${isOneValue ? "" : `${column} ${order}, `}position ${order} LIMIT :limit`,
      parameters,
    };
  },
  /** Which of `:positions` have documents that contain all of `texts`. */
  containing: (texts: readonly string[]) => ({
    sql: `SELECT position FROM documents WHERE position IN (SELECT value FROM json_each(:positions))
      ${texts.map((_, nth) => `AND instr(shadow, :text_${nth})`).join(" ")}`,
    parameters: Object.fromEntries(texts.map((text, nth) => [`:text_${nth}`, text])),
  }),
  count: (condition: CountedCondition) => {
    const { where, parameters } = conditionSql(condition, { byRow: readsRows(condition) });
    return { sql: `SELECT count(*) AS count FROM devices WHERE ${where}`, parameters };
  },
  countBy: (facet: "version" | "label", condition: CountedCondition) => {
    // A set of positions is built fastest in their order.
    const byRow = facet === "label" || readsRows(condition);
    const { where, parameters } = conditionSql(condition, { byRow });
    const counted = (value: string, from: string) =>
      `SELECT ${value} AS value, count(*) AS count, sum(count(*)) OVER () AS total
        FROM ${from} GROUP BY ${value} ORDER BY count DESC, value LIMIT ${maxFacetValues}`;
    if (facet === "version") return { sql: counted("firmware", `devices WHERE ${where}`), parameters };
    // A set is asked for each label: a join reads a row for each.
    const among =
      Object.keys(condition).length === 0
        ? "NOT IN (SELECT position FROM devices WHERE mark IS NOT NULL AND hidden = 1)"
        : `IN (SELECT position FROM devices WHERE ${where})`;
    return { sql: counted("label", `device_labels WHERE position ${among}`), parameters };
  },
} as const;

/** Rows of one statement of a list that reads documents. */
const scannedRows = 1_000;
/** Documents that are read in one turn of the event loop. */
const documentsPerTurn = 50;

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
    ...createSqliteBoardStore(db, commits),

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
          delta_metadata: device.delta_metadata ? 1 : 0,
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

    labelsOf: unlessAborted((id) => labelsIn(queries.labelsOf.get(id) ?? {})),

    replace(device, revision, signal) {
      const acl = JSON.stringify(device.acl);
      const shadow = JSON.stringify(device.shadow);
      const { id, name } = device;
      const labels = labelsColumn(device);
      const firmware = firmwareVersion(device.shadow.reported);
      const delta_metadata = device.delta_metadata ? 1 : 0;
      return commits.run(() => {
        const replaced = queries.replace.get({ id, name, labels, firmware, delta_metadata, revision });
        if (!replaced) return false;
        queries.replaceDocument.run(acl, shadow, replaced.position as number);
        return true;
      }, signal);
    },

    async list({ by, descending = false, after, condition = {}, limit }, signal) {
      signal.throwIfAborted();
      const start = after === undefined ? null : placeOf(after, by);
      if (start === null && after !== undefined) return null;
      const { contained = [], ...counted } = condition;
      const rowsAfter = (place: ListPlace | null, most: number): ListRow[] => {
        if (by === undefined) {
          const { sql, parameters } = conditionalQueries.list(counted, descending);
          const position = place?.position ?? (descending ? Number.MAX_SAFE_INTEGER : 0);
          return db.prepare(sql).all({ ...parameters, ":after": position, ":limit": most });
        }
        const rows: ListRow[] = [];
        for (const range of rangesAfter(place, descending)) {
          const { sql, parameters } = conditionalQueries.listRange(counted, { by, descending }, range);
          rows.push(...db.prepare(sql).all({ ...parameters, ":limit": most - rows.length }));
          if (rows.length >= most) break;
        }
        return rows;
      };
      if (contained.length === 0) return rowsAfter(start, limit).map((row) => listedDevice(row, by));

      const containing = conditionalQueries.containing(contained);
      const scan = db.prepare(containing.sql);
      const found: ListedDevice[] = [];
      for (let rows = rowsAfter(start, scannedRows); ; ) {
        for (let from = 0; from < rows.length; from += documentsPerTurn) {
          const portion = rows.slice(from, from + documentsPerTurn);
          const positions = JSON.stringify(portion.map(({ position }) => position));
          const met = scan.all({ ...containing.parameters, ":positions": positions });
          const among = new Set<unknown>(met.map(({ position }) => position));
          for (const row of portion) if (among.has(row.position)) found.push(listedDevice(row, by));
          if (found.length >= limit) return found.slice(0, limit);
          await nextTurn();
          signal.throwIfAborted();
        }
        const last = rows.at(-1);
        if (last === undefined || rows.length < scannedRows) return found;
        rows = rowsAfter(placeIn(last, by), scannedRows);
      }
    },

    count: unlessAborted((condition) => {
      if (Object.keys(condition).length === 0) return queries.count.get()?.visible as number;
      const { sql, parameters } = conditionalQueries.count(condition);
      return db.prepare(sql).get(parameters)?.count as number;
    }),

    countBy: unlessAborted((facet, condition) => {
      const { sql, parameters } = conditionalQueries.countBy(facet, condition);
      const rows = db.prepare(sql).all(parameters);
      const values = rows.map((row) => ({ value: row.value as string | null, count: row.count as number }));
      const listed = values.reduce((sum, { count }) => sum + count, 0);
      return { values, others: Number(rows[0]?.total ?? 0) - listed };
    }),

    countByFirmware: unlessAborted((times) => {
      const before = Object.fromEntries(times.map((time, nth) => [`before_${nth}`, time]));
      return queries.countByFirmware.all(before).map((row) => ({
        version: row.firmware as string | null,
        devices: row.devices as number,
        online: row.online as number,
        silent: times.map((_, nth) => row[`silent_${nth}`] as number),
      }));
    }),

    findAll: unlessAborted((ids) => queries.findAll.all(JSON.stringify(ids)).map(storedDevice)),

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

    readViews: unlessAborted(() => {
      const row = queries.readViews.get();
      return { revision: row?.revision as number, views: JSON.parse(row?.views as string) };
    }),

    replaceViews({ revision, views }, signal) {
      const changed = { revision, views: JSON.stringify(views) };
      return commits.run(() => queries.replaceViews.run(changed).changes === 1, signal);
    },

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

function labelsIn({ labels }: Record<string, unknown>): readonly string[] {
  return typeof labels === "string" ? JSON.parse(labels) : [];
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

type ListRow = Record<string, unknown>;

/** The place of a row in the order of a column, or of creation. */
function placeIn(row: ListRow, by?: keyof typeof orderedColumns): ListPlace {
  const position = row.position as number;
  return by === undefined
    ? { position }
    : { position, value: row[orderedColumns[by]] as string | number | null };
}

function listedDevice(row: ListRow, by?: keyof typeof orderedColumns): ListedDevice {
  return {
    cursor: cursorOf(placeIn(row, by)),
    id: row.id as string,
    created_at: row.created_at as number,
    version: row.firmware as string | null,
    labels: labelsIn(row),
  };
}

/** Trusts the JSON: only this adapter writes the table. */
function storedDevice(row: Record<string, unknown>): StoredDevice {
  return {
    id: row.id as string,
    name: row.name as string | null,
    acl: JSON.parse(row.acl as string),
    shadow: JSON.parse(row.shadow as string),
    delta_metadata: row.delta_metadata === 1,
    created_at: row.created_at as number,
    last_seen: row.last_seen as number | null,
    revision: row.revision as number,
    position: String(row.position),
  };
}
