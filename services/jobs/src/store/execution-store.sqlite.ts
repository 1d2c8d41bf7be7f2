import type { DatabaseSync } from "node:sqlite";
import type { GroupCommit } from "@devmesh/store/group-commit";
import { unlessAborted } from "@devmesh/store/sqlite";
import {
  callEndOf,
  type ExecutionStore,
  isReleased,
  laneOf,
  noExecutions,
  readExecution,
  type StoredExecution,
} from "./execution-store.ts";
import { sqliteJobs } from "./job-store.sqlite.ts";

/** `document` is the JSON of the execution; the other columns repeat what is looked for. */
export const executionTables = `
CREATE TABLE execution (
  id TEXT PRIMARY KEY,
  device_id TEXT NOT NULL,
  job_id TEXT,
  -- 0 of a call.
  place REAL NOT NULL,
  revision INTEGER NOT NULL,
  state TEXT NOT NULL,
  -- The device while it is sent: no second one of the same.
  lane TEXT UNIQUE,
  due_at INTEGER,
  not_before INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  ended_at INTEGER,
  -- The digest of the ticket of a download.
  ticket TEXT,
  -- 0 once the device is deleted.
  listed INTEGER NOT NULL,
  document TEXT NOT NULL
) STRICT;
CREATE INDEX execution_of_device ON execution (device_id, id) WHERE listed = 1;
CREATE INDEX execution_waiting ON execution (device_id, id) WHERE state = 'queued';
CREATE INDEX execution_due ON execution (due_at) WHERE state = 'sent';
CREATE INDEX execution_expiring ON execution (expires_at) WHERE state = 'queued';
CREATE INDEX execution_ended ON execution (ended_at) WHERE ended_at IS NOT NULL;
CREATE UNIQUE INDEX execution_of_job_device ON execution (job_id, device_id) WHERE job_id IS NOT NULL;
CREATE INDEX execution_of_job ON execution (job_id, place) WHERE job_id IS NOT NULL;
CREATE INDEX execution_of_job_state ON execution (job_id, state, place) WHERE job_id IS NOT NULL;
CREATE UNIQUE INDEX execution_of_ticket ON execution (ticket) WHERE ticket IS NOT NULL;
`;

/** Statements by purpose; exported so that a test can ask the database for the plans. */
export const executionQueries = {
  insert: `INSERT OR IGNORE INTO execution (id, device_id, job_id, place, revision, state, lane, due_at, not_before,
    expires_at, ended_at, ticket, listed, document) VALUES (:id, :device_id, :job_id, :place, :revision, :state, :lane,
    :due_at, :not_before, :expires_at, :ended_at, :ticket, 1, :document)`,
  find: "SELECT document, listed FROM execution WHERE id = ?",
  findByTicket: "SELECT document FROM execution WHERE ticket = ?",
  list: `SELECT document FROM execution WHERE device_id = :device_id AND listed = 1 AND id < :before
    ORDER BY id DESC LIMIT :limit`,
  listState: `SELECT document FROM execution WHERE device_id = :device_id AND listed = 1 AND id < :before
    AND state = :state ORDER BY id DESC LIMIT :limit`,
  queuedInOrder: `SELECT document FROM execution WHERE device_id = ?1 AND state = 'queued' AND not_before <= ?2
    AND expires_at > ?2 ORDER BY id`,
  listOfJob: `SELECT document FROM execution WHERE job_id = :job_id AND place > :after AND place <= :upTo
    ORDER BY place LIMIT :limit`,
  listStateOfJob: `SELECT document FROM execution INDEXED BY execution_of_job_state WHERE job_id = :job_id AND state = :state AND place > :after
    AND place <= :upTo ORDER BY place LIMIT :limit`,
  findOfJob: "SELECT document FROM execution WHERE job_id = ? AND device_id = ?",
  placeBeyond: `SELECT place FROM execution WHERE job_id = ? AND place > ? ORDER BY place LIMIT 1 OFFSET ?`,
  lastPlace: `SELECT max(place) AS place, count(*) AS n FROM execution WHERE job_id = ? AND place > ?`,
  countStates: "SELECT state, count(*) AS n FROM execution WHERE job_id = ? GROUP BY state",
  removeOfJob: "DELETE FROM execution WHERE id IN (SELECT id FROM execution WHERE job_id = ? LIMIT ?)",
  change: `UPDATE OR IGNORE execution SET revision = :revision, state = :state, lane = :lane, due_at = :due_at,
    not_before = :not_before, expires_at = :expires_at, ended_at = :ended_at, ticket = :ticket, document = :document
    WHERE id = :id AND revision = :revision - 1`,
  listWaiting:
    "SELECT device_id FROM execution WHERE state = 'queued' AND device_id > ? ORDER BY device_id LIMIT ?",
  callsOf:
    "SELECT document FROM execution WHERE device_id = ? AND state = 'queued' AND job_id IS NULL LIMIT ?",
  queuedOf: "SELECT document FROM execution WHERE device_id = ? AND state = 'queued' LIMIT ?",
  sentOf: `SELECT document FROM execution WHERE lane = ?1 OR (lane > ?1 || '/' AND lane < ?1 || '0') LIMIT ?2`,
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
        const waiting = queries.callsOf.all(execution.device_id, most).map(storedExecution);
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

    findByTicket: unlessAborted((digest) => {
      const row = queries.findByTicket.get(digest);
      return row === undefined ? null : storedExecution(row);
    }),

    list: unlessAborted(({ device_id, state, after = "~", limit }) => {
      const range = { device_id, before: after, limit };
      const rows = state === undefined ? queries.list.all(range) : queries.listState.all({ ...range, state });
      return rows.map(storedExecution);
    }),

    findDue: unlessAborted((deviceIds, now, released) =>
      deviceIds.flatMap((id) => {
        for (const row of queries.queuedInOrder.iterate(id, now)) {
          const execution = storedExecution(row);
          if (isReleased(execution, released)) return [execution];
        }
        return [];
      }),
    ),

    insertOfJob: (executions, signal) =>
      commits.run(() => {
        const stored = executions.filter((one) => queries.insert.run(rowOf(one)).changes === 1);
        return new Set(stored.map(({ id }) => id));
      }, signal),

    listOfJob: unlessAborted(({ job_id, state, after = -1, upTo = Number.MAX_VALUE, limit }) => {
      const range = { job_id, after, upTo, limit };
      const rows =
        state === undefined ? queries.listOfJob.all(range) : queries.listStateOfJob.all({ ...range, state });
      return rows.map(storedExecution);
    }),

    findOfJob: unlessAborted((jobId, deviceIds) =>
      deviceIds.flatMap((id) => queries.findOfJob.all(jobId, id).map(storedExecution)),
    ),

    placeBeyond: unlessAborted((jobId, place, count) => {
      const row = queries.placeBeyond.get(jobId, place, count - 1);
      if (row !== undefined) return { place: Number(row.place), count };
      const last = queries.lastPlace.get(jobId, place);
      return { place: Number(last?.place ?? place), count: Number(last?.n) };
    }),

    countStates: unlessAborted((jobId) => {
      const counted = queries.countStates.all(jobId).map(({ state, n }) => [state, Number(n)]);
      return { ...noExecutions, ...Object.fromEntries(counted) };
    }),

    change: (executions, signal) =>
      commits.run(() => {
        const changed = executions.filter((one) => {
          const { device_id: _, job_id: __, place: ___, ...row } = rowOf(one);
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
      [...queries.sentOf.all(deviceId, limit), ...queries.queuedOf.all(deviceId, limit)].map(storedExecution),
    ),

    unlist: (deviceId, signal) => commits.run(() => void queries.unlist.run(deviceId), signal),

    countOpen: unlessAborted(() => ({
      queued: Number(queries.countQueued.get()?.n),
      sent: Number(queries.countSent.get()?.n),
    })),

    removeEnded: (before, limit, signal) =>
      commits.run(() => Number(queries.removeEnded.run(before, limit).changes), signal),

    ...sqliteJobs(db, commits, (id, limit) => Number(queries.removeOfJob.run(id, limit).changes)),
  };
}

function rowOf(execution: StoredExecution) {
  const { id, device_id, job_id, place, revision, state, due_at, not_before, expires_at, ticket } = execution;
  const derived = { lane: laneOf(execution), ended_at: callEndOf(execution) };
  const document = JSON.stringify(execution);
  return {
    id,
    device_id,
    job_id,
    place,
    revision,
    state,
    due_at,
    not_before,
    expires_at,
    ticket,
    ...derived,
    document,
  };
}

const storedExecution = (row: Record<string, unknown>) => readExecution(String(row.document));
