import type { Firmware } from "@devmesh/contracts/model/firmware";
import type { Job } from "@devmesh/contracts/model/job";

/** The jobs that send a file to devices. */
export function jobsOf(jobs: readonly Job[], { id }: Pick<Firmware, "id">): readonly Job[] {
  return jobs.filter(({ action }) => "firmware_id" in action && action.firmware_id === id);
}
