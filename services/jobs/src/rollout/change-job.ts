import type { JobPatch } from "@devmesh/contracts/model/job";
import type { JobStore, StoredJob } from "../store/job-store.ts";
import { patchJob } from "./rollout.ts";

/** Changes a job by compare-and-set; returns it as it is then, or why it was not. */
export async function changeJob(
  store: Pick<JobStore, "findJob" | "changeJob">,
  id: string,
  patch: JobPatch,
  changed: Parameters<typeof patchJob>[2],
  signal: AbortSignal,
): Promise<StoredJob | "job_not_found" | "job_ended"> {
  for (;;) {
    const job = await store.findJob(id, signal);
    if (job === null) return "job_not_found";
    const next = patchJob(job, patch, changed);
    if (next === null) return "job_ended";
    const written = { ...next, revision: job.revision + 1 };
    if (await store.changeJob(written, signal)) return written;
  }
}
