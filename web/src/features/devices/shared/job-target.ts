import { queryKeys } from "../../../api/query-keys.ts";
import { useStreamed } from "../../../live/use-streamed.ts";

/** Devices that a new job is for: those that were selected in the list. */
export function useJobTarget() {
  return useStreamed<readonly string[]>(queryKeys.jobTarget, noDevices, Number.POSITIVE_INFINITY);
}

const noDevices: readonly string[] = [];
