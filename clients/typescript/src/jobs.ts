import type { Requests } from "./answers.ts";
import type { Schemas } from "./notifications.ts";
import { isPassing, pause, pauseMs } from "./repeated.ts";
import type { operations } from "./schema.ts";

/** How often a job is read while it is waited for, in milliseconds. */
const readEveryMs = 1_000;

/** A request that its signal ends. */
export interface Cancellable {
  readonly signal?: AbortSignal;
}

/** How a job is waited for. */
export interface WaitForJob extends Cancellable {
  /** Also resolves while the job is paused, since a person must decide what follows. */
  readonly orPaused?: boolean;
  /** Called with the job each time that it was read. */
  readonly onProgress?: (job: Schemas["Job"]) => void;
}

type ExecutionQuery = NonNullable<operations["listJobExecutions"]["parameters"]["query"]>;

/** Jobs: one action for many devices. What is not here is below `GET` and `POST`. */
export interface Jobs {
  create(job: Schemas["JobInput"], options?: Cancellable): Promise<Schemas["Job"]>;
  /** What the job would do; it stores nothing. */
  try(job: Schemas["JobInput"], options?: Cancellable): Promise<Schemas["JobTrial"]>;
  /** Its executions in the order of its rollout, page after page. */
  executions(id: string, query?: ExecutionQuery): AsyncGenerator<Schemas["Execution"], void, undefined>;
  /** Resolves with the job once it is `done` or `cancelled`, also while the server is away meanwhile. */
  wait(id: string, options?: WaitForJob): Promise<Schemas["Job"]>;
}

/** The jobs that these requests reach; `executionsOf` lists those of one. */
export function jobsOf(
  { GET, POST }: Pick<Requests, "GET" | "POST">,
  executionsOf: Jobs["executions"],
): Jobs {
  async function send(body: Schemas["JobInput"], query: { dry_run?: boolean }, { signal }: Cancellable) {
    return (await POST("/api/v2/jobs", { params: { query }, body, ...(signal && { signal }) })).data;
  }
  async function read(id: string, signal: AbortSignal | undefined): Promise<Schemas["Job"]> {
    return (await GET("/api/v2/jobs/{id}", { params: { path: { id } }, ...(signal && { signal }) })).data;
  }
  return {
    create: async (job, options = {}) => (await send(job, {}, options)) as Schemas["Job"],
    try: async (job, options = {}) => (await send(job, { dry_run: true }, options)) as Schemas["JobTrial"],
    executions: executionsOf,
    async wait(id, { orPaused = false, onProgress, signal } = {}) {
      for (let failedMs: number = pauseMs.first; ; ) {
        signal?.throwIfAborted();
        try {
          const job = await read(id, signal);
          onProgress?.(job);
          if (job.ended_at !== null || (orPaused && job.state === "paused")) return job;
          failedMs = pauseMs.first;
          await pause(readEveryMs, signal);
        } catch (error) {
          if (!isPassing(error)) throw error;
          await pause(failedMs, signal);
          failedMs = Math.min(2 * failedMs, pauseMs.longest);
        }
      }
    },
  };
}
