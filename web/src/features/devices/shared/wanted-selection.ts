import { queryKeys } from "../../../api/query-keys.ts";
import { useStreamed } from "../../../live/use-streamed.ts";

/** Devices that another part of the page wants to be selected in the list; null for none. The list takes them once. */
export function useWantedSelection() {
  return useStreamed<ReadonlySet<string> | null>(queryKeys.wantedSelection, null, Number.POSITIVE_INFINITY);
}
