import type { DatabaseSync } from "node:sqlite";
import type { GroupCommit } from "@devmesh/store/group-commit";
import { unlessAborted } from "@devmesh/store/sqlite";
import type { JobStore, StoredJob } from "./job-store.ts";

/** `document` is the JSON of the job; the other columns repeat what is looked for. */
export const jobTable = `
  CREATE TABLE job (
    id TEXT PRIMARY KEY,
    revision INTEGER NOT NULL,
    state TEXT NOT NULL,
    continuous INTEGER NOT NULL,
    settled INTEGER NOT NULL,
    ended_at INTEGER,
    document TEXT NOT NULL
  ) STRICT;
  CREATE INDEX job_of_state ON job (state, id);
  CREATE INDEX job_open ON job (id) WHERE settled = 0;
  CREATE INDEX job_ended ON job (ended_at) WHERE settled = 1;
`;

/** Statements by purpose; exported so that a test can ask the database for the plans. */
export const jobQueries = {
  insert: `INSERT INTO job (id, revision, state, continuous, settled, ended_at, document)
    VALUES (:id, :revision, :state, :continuous, :settled, :ended_at, :document)`,
  find: "SELECT document FROM job WHERE id = ?",
  change: `UPDATE job SET revision = :revision, state = :state, continuous = :continuous, settled = :settled,
    ended_at = :ended_at, document = :document WHERE id = :id AND revision = :revision - 1`,
  list: "SELECT document FROM job WHERE id < :before ORDER BY id DESC LIMIT :limit",
  listState: "SELECT document FROM job WHERE state = :state AND id < :before ORDER BY id DESC LIMIT :limit",
  listOpen: "SELECT document FROM job WHERE settled = 0 ORDER BY id",
  countOpen: "SELECT count(*) AS n, coalesce(sum(continuous), 0) AS continuous FROM job WHERE settled = 0",
  listOld: "SELECT id FROM job WHERE settled = 1 AND ended_at < ? LIMIT ?",
  remove: "DELETE FROM job WHERE id = ?",
} as const;

/** Jobs in the file of the executions, whose adapter removes those of a job. */
export function sqliteJobs(
  db: DatabaseSync,
  commits: GroupCommit,
  removeExecutions: (jobId: string, limit: number) => number,
): JobStore {
  const prepared = Object.entries(jobQueries).map(([purpose, sql]) => [purpose, db.prepare(sql)]);
  const queries = Object.fromEntries(prepared) as Record<
    keyof typeof jobQueries,
    ReturnType<typeof db.prepare>
  >;

  return {
    insertJob: (job, bounds, signal) =>
      commits.run(() => {
        const open = queries.countOpen.get();
        if (Number(open?.n) >= bounds.open) return false;
        if (job.continuous && Number(open?.continuous) >= bounds.continuous) return false;
        queries.insert.run(rowOf(job));
        return true;
      }, signal),

    findJob: unlessAborted((id) => queries.find.all(id).map(storedJob).at(0) ?? null),

    changeJob: (job, signal) => commits.run(() => queries.change.run(rowOf(job)).changes === 1, signal),

    // They are counted in the commit that inserts.
    correctJobCounts: async () => undefined,

    listJobs: unlessAborted(({ state, after = "~", limit }) => {
      const range = { before: after, limit };
      const rows = state === undefined ? queries.list.all(range) : queries.listState.all({ ...range, state });
      return rows.map(storedJob);
    }),

    listOpenJobs: unlessAborted(() => queries.listOpen.all().map(storedJob)),

    listOldJobs: unlessAborted((before, limit) =>
      queries.listOld.all(before, limit).map(({ id }) => String(id)),
    ),

    removeJob: (id, limit, signal) =>
      commits.run(() => {
        const isEmpty = removeExecutions(id, limit) < limit;
        if (isEmpty) queries.remove.run(id);
        return isEmpty;
      }, signal),
  };
}

function rowOf(job: StoredJob) {
  const { id, revision, state, ended_at } = job;
  const flags = { continuous: Number(job.continuous), settled: Number(job.settled) };
  return { id, revision, state, ended_at, ...flags, document: JSON.stringify(job) };
}

/** Trusts the JSON: only this adapter writes the table. */
function storedJob(row: Record<string, unknown>): StoredJob {
  return JSON.parse(String(row.document));
}
