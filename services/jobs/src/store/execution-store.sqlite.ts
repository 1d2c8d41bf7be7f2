import type { DatabaseSync } from "node:sqlite";
import type { GroupCommit } from "@devmesh/store/group-commit";
import { unlessAborted } from "@devmesh/store/sqlite";
import { type ExecutionStore, laneOf, type StoredExecution } from "./execution-store.ts";

/** `document` is the JSON of the execution; the other columns repeat what is looked for. */
export const executionTables = `
CREATE TABLE execution (
  id TEXT PRIMARY KEY,
  device_id TEXT NOT NULL,
  revision INTEGER NOT NULL,
  state TEXT NOT NULL,
  -- The device while it is sent: no second one of the same.
  lane TEXT UNIQUE,
  due_at INTEGER,
  not_before INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  ended_at INTEGER,
  -- 0 once the device is deleted.
  listed INTEGER NOT NULL,
  document TEXT NOT NULL
) STRICT;
CREATE INDEX execution_of_device ON execution (device_id, id) WHERE listed = 1;
CREATE INDEX execution_waiting ON execution (device_id, id) WHERE state = 'queued';
CREATE INDEX execution_due ON execution (due_at) WHERE state = 'sent';
CREATE INDEX execution_expiring ON execution (expires_at) WHERE state = 'queued';
CREATE INDEX execution_ended ON execution (ended_at) WHERE ended_at IS NOT NULL;
`;

/** Statements by purpose; exported so that a test can ask the database for the plans. */
export const executionQueries = {
  insert: `INSERT INTO execution (id, device_id, revision, state, lane, due_at, not_before, expires_at, ended_at, listed, document)
    VALUES (:id, :device_id, :revision, :state, :lane, :due_at, :not_before, :expires_at, :ended_at, 1, :document)`,
  find: "SELECT document, listed FROM execution WHERE id = ?",
  list: `SELECT document FROM execution WHERE device_id = :device_id AND listed = 1 AND id < :before
    ORDER BY id DESC LIMIT :limit`,
  listState: `SELECT document FROM execution WHERE device_id = :device_id AND listed = 1 AND id < :before
    AND state = :state ORDER BY id DESC LIMIT :limit`,
  findDue: `SELECT document FROM execution WHERE device_id = ?1 AND state = 'queued' AND not_before <= ?2
    AND expires_at > ?2 ORDER BY id LIMIT 1`,
  change: `UPDATE OR IGNORE execution SET revision = :revision, state = :state, lane = :lane, due_at = :due_at,
    not_before = :not_before, expires_at = :expires_at, ended_at = :ended_at, document = :document
    WHERE id = :id AND revision = :revision - 1`,
  listWaiting:
    "SELECT device_id FROM execution WHERE state = 'queued' AND device_id > ? ORDER BY device_id LIMIT ?",
  queuedOf: "SELECT document FROM execution WHERE device_id = ? AND state = 'queued' LIMIT ?",
  sentOf: "SELECT document FROM execution WHERE lane = ?",
  overdue: "SELECT document FROM execution WHERE state = 'sent' AND due_at <= ? LIMIT ?",
  expired: "SELECT document FROM execution WHERE state = 'queued' AND expires_at <= ? LIMIT ?",
  unlist: "UPDATE execution SET listed = 0 WHERE device_id = ? AND listed = 1",
  countQueued: "SELECT count(*) AS n FROM execution WHERE state = 'queued'",
  countSent: "SELECT count(*) AS n FROM execution WHERE state = 'sent'",
  removeEnded: `DELETE FROM execution WHERE id IN
    (SELECT id FROM execution WHERE ended_at IS NOT NULL AND ended_at < ? LIMIT ?)`,
} as const;

/** Executions in the SQLite file of the service. */
export function createSqliteExecutionStore(db: DatabaseSync, commits: GroupCommit): ExecutionStore {
  const prepared = Object.entries(executionQueries).map(([purpose, sql]) => [purpose, db.prepare(sql)]);
  const queries = Object.fromEntries(prepared) as Record<
    keyof typeof executionQueries,
    ReturnType<typeof db.prepare>
  >;

  return {
    insert: (execution, { most, mostOfKind }, signal) =>
      commits.run(() => {
        const waiting = queries.queuedOf.all(execution.device_id, most).map(storedExecution);
        const { kind } = execution.created_by;
        if (waiting.length >= most) return false;
        if (waiting.filter(({ created_by }) => created_by.kind === kind).length >= mostOfKind) return false;
        queries.insert.run(rowOf(execution));
        return true;
      }, signal),

    find: unlessAborted((id) => {
      const row = queries.find.get(id);
      return row === undefined ? null : { execution: storedExecution(row), listed: row.listed === 1 };
    }),

    list: unlessAborted(({ device_id, state, after = "~", limit }) => {
      const range = { device_id, before: after, limit };
      const rows = state === undefined ? queries.list.all(range) : queries.listState.all({ ...range, state });
      return rows.map(storedExecution);
    }),

    findDue: unlessAborted((deviceIds, now) =>
      deviceIds.flatMap((id) => queries.findDue.all(id, now).map(storedExecution)),
    ),

    change: (executions, signal) =>
      commits.run(() => {
        const changed = executions.filter((one) => {
          const { device_id: _, ...row } = rowOf(one);
          return queries.change.run(row).changes === 1;
        });
        return new Set(changed.map(({ id }) => id));
      }, signal),

    listWaiting: unlessAborted((after, limit) =>
      queries.listWaiting.all(after, limit).map(({ device_id }) => String(device_id)),
    ),

    listOverdue: unlessAborted((now, limit) =>
      [queries.overdue, queries.expired].flatMap((query) => query.all(now, limit).map(storedExecution)),
    ),

    listOpen: unlessAborted((deviceId, limit) =>
      [...queries.sentOf.all(deviceId), ...queries.queuedOf.all(deviceId, limit)].map(storedExecution),
    ),

    unlist: (deviceId, signal) => commits.run(() => void queries.unlist.run(deviceId), signal),

    countOpen: unlessAborted(() => ({
      queued: Number(queries.countQueued.get()?.n),
      sent: Number(queries.countSent.get()?.n),
    })),

    removeEnded: (before, limit, signal) =>
      commits.run(() => Number(queries.removeEnded.run(before, limit).changes), signal),

    // The file is open in this process alone.
    lease: async () => true,
    release: async () => undefined,
  };
}

function rowOf(execution: StoredExecution) {
  const { id, device_id, revision, state, due_at, not_before, expires_at, ended_at } = execution;
  const document = JSON.stringify(execution);
  const lane = laneOf(execution);
  return { id, device_id, revision, state, lane, due_at, not_before, expires_at, ended_at, document };
}

/** Trusts the JSON: only this adapter writes the table. */
function storedExecution(row: Record<string, unknown>): StoredExecution {
  return JSON.parse(String(row.document));
}
