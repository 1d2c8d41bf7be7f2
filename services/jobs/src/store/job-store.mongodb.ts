import { createMongoLimit } from "@devmesh/store/limit.mongodb";
import type { CollectionDeclaration, MongoStore } from "@devmesh/store/mongodb";
import type { JobStore, StoredJob } from "./job-store.ts";

/** `document` is the JSON of the job: names in a patch could be taken for operators. */
interface JobRow {
  readonly _id: string;
  readonly revision: number;
  readonly state: StoredJob["state"];
  readonly continuous: boolean;
  readonly settled: boolean;
  /** Absent while it has not ended. */
  readonly ended_at?: number;
  readonly document: string;
}

export const jobCollection = {
  name: "jobs",
  indexes: [
    { name: "of_state", key: { state: 1, _id: -1 } },
    { name: "settled", key: { settled: 1, ended_at: 1 } },
  ],
} as const satisfies CollectionDeclaration;

/** Filters by purpose; exported so that a test can ask the database for the plans. */
export const jobFilters = {
  ofState: (state: StoredJob["state"], before: string) => ({ state, _id: { $lt: before } }),
  open: () => ({ settled: false }),
  endedBefore: (before: number) => ({ settled: true, ended_at: { $lt: before } }),
} as const;

/** Jobs in the database of the executions, whose adapter removes those of a job. */
export function mongoJobs(
  { db, run }: Pick<MongoStore, "db" | "run">,
  removeExecutions: (jobId: string, limit: number, signal: AbortSignal) => Promise<number>,
): JobStore {
  const jobs = db.collection<JobRow>(jobCollection.name);
  const limitOf = (name: string, filter: object) =>
    createMongoLimit(
      { db, run },
      { name, countStored: (signal) => run(signal, () => jobs.countDocuments(filter, { signal })) },
    );
  const limits = {
    open: limitOf("open jobs", jobFilters.open()),
    continuous: limitOf("continuous jobs", { ...jobFilters.open(), continuous: true }),
  };

  return {
    insertJob(job, bounds, signal) {
      const row = { _id: job.id, ...membersOf(job) };
      const insert = async () => (await run(signal, () => jobs.insertOne(row))).acknowledged;
      const insertOpen = () => limits.open.insert(bounds.open, insert, signal);
      return job.continuous ? limits.continuous.insert(bounds.continuous, insertOpen, signal) : insertOpen();
    },

    async findJob(id, signal) {
      const row = await run(signal, () => jobs.findOne({ _id: id }, { signal }));
      return row && storedJob(row);
    },

    async changeJob(job, signal) {
      const filter = { _id: job.id, revision: job.revision - 1 };
      if (!job.settled)
        return (await run(signal, () => jobs.replaceOne(filter, membersOf(job)))).matchedCount === 1;
      let before: Pick<JobRow, "settled"> | null = null;
      const settle = async () => {
        before = await run(signal, () => jobs.findOneAndReplace(filter, membersOf(job)));
        return before?.settled === false ? 1 : 0;
      };
      const settleOpen = () => limits.open.remove(settle, signal);
      await (job.continuous ? limits.continuous.remove(settleOpen, signal) : settleOpen());
      return before !== null;
    },

    async correctJobCounts(signal) {
      await Promise.all(Object.values(limits).map((limit) => limit.correct(signal)));
    },

    async listJobs({ state, after = "~", limit }, signal) {
      const filter = state === undefined ? { _id: { $lt: after } } : jobFilters.ofState(state, after);
      const rows = await run(signal, () =>
        jobs.find(filter, { signal }).sort({ _id: -1 }).limit(limit).toArray(),
      );
      return rows.map(storedJob);
    },

    async listOpenJobs(signal) {
      const rows = await run(signal, () =>
        jobs.find(jobFilters.open(), { signal }).sort({ _id: 1 }).toArray(),
      );
      return rows.map(storedJob);
    },

    async listOldJobs(before, limit, signal) {
      const rows = await run(signal, () =>
        jobs
          .find(jobFilters.endedBefore(before), { projection: { _id: 1 }, signal })
          .limit(limit)
          .toArray(),
      );
      return rows.map(({ _id }) => _id);
    },

    async removeJob(id, limit, signal) {
      if ((await removeExecutions(id, limit, signal)) === limit) return false;
      await run(signal, () => jobs.deleteOne({ _id: id }));
      return true;
    },
  };
}

function membersOf(job: StoredJob) {
  const { revision, state, continuous, settled, ended_at } = job;
  const document = JSON.stringify(job);
  return { revision, state, continuous, settled, ...(ended_at !== null && { ended_at }), document };
}

/** Trusts the JSON: only this adapter writes the collection. */
function storedJob({ document }: JobRow): StoredJob {
  return JSON.parse(document);
}
