import type { Action } from "@devmesh/contracts/model/action";
import { lengthOf } from "@devmesh/contracts/model/duration";
import { setNewest } from "@devmesh/service-kit/set-newest";
import type { ExecutionStore, StoredExecution } from "./execution-store.ts";
import type { StoredJob } from "./job-store.ts";

/** What all executions of a job have in common; none of it changes. */
type Common = Pick<StoredExecution, "action" | "retry" | "max_attempts" | "created_by" | "from_webhook">;

/** Jobs whose common part is kept in memory, of 16 KB at most each. */
const keptJobs = 1_000;

/**
 * A store that keeps what all executions of a job have in common with the job alone: the parameters of a call to
 * 100,000 devices are stored once.
 */
export function withJobActions(store: ExecutionStore): ExecutionStore {
  const known = new Map<string, Common>();

  async function commonOf(jobId: string, signal: AbortSignal): Promise<Common | undefined> {
    const kept = known.get(jobId);
    if (kept !== undefined) return kept;
    const job = await store.findJob(jobId, signal);
    if (job === null) return undefined;
    const common = commonPart(job);
    setNewest(known, jobId, common, keptJobs);
    return common;
  }

  async function whole(executions: readonly StoredExecution[], signal: AbortSignal) {
    const ids = new Set(executions.flatMap(({ job_id }) => job_id ?? []));
    const ofJobs = new Map<string, Common | undefined>();
    for (const id of ids) ofJobs.set(id, await commonOf(id, signal));
    return executions.flatMap((one) => {
      if (one.job_id === null) return [one];
      const common = ofJobs.get(one.job_id);
      // The job was removed meanwhile, its executions before it.
      return common === undefined ? [] : [{ ...one, ...common }];
    });
  }

  return {
    ...store,
    insertOfJob: (executions, signal) => store.insertOfJob(executions.map(cut), signal),
    change: (executions, signal) => store.change(executions.map(cut), signal),
    async find(id, signal) {
      const found = await store.find(id, signal);
      if (found === null) return null;
      const [execution] = await whole([found.execution], signal);
      return execution === undefined ? null : { ...found, execution };
    },
    async findByTicket(digest, signal) {
      const found = await store.findByTicket(digest, signal);
      const [execution] = found === null ? [] : await whole([found], signal);
      return execution ?? null;
    },
    list: async (listing, signal) => whole(await store.list(listing, signal), signal),
    findDue: async (ids, now, released, signal) =>
      whole(await store.findDue(ids, now, released, signal), signal),
    listOfJob: async (listing, signal) => whole(await store.listOfJob(listing, signal), signal),
    findOfJob: async (jobId, ids, signal) => whole(await store.findOfJob(jobId, ids, signal), signal),
    listOverdue: async (now, limit, signal) => whole(await store.listOverdue(now, limit, signal), signal),
    listOpen: async (id, limit, signal) => whole(await store.listOpen(id, limit, signal), signal),
  };
}

/** What the executions of a job are created with. */
export function commonPart({ action, retry, created_by, from_webhook }: StoredJob): Common {
  return {
    action,
    retry: { on: retry.on, after_ms: lengthOf(retry.after) },
    max_attempts: retry.attempts,
    created_by,
    ...(from_webhook && { from_webhook }),
  };
}

/** An execution as it is written: of its action that alone on which its lane depends. */
function cut(execution: StoredExecution): StoredExecution {
  if (execution.job_id === null) return execution;
  const { action, retry: _, max_attempts: __, created_by: ___, ...own } = execution;
  const { kind } = action;
  const kept = kind === "firmware" ? { kind, via: action.via } : { kind };
  // Read again by `whole` alone, which adds what is missing.
  return { ...own, action: kept as Action } as StoredExecution;
}
