import { useCallback, useMemo } from "react";
import { useSearchParams } from "wouter";
import type { RecordSelection } from "./record-selection.ts";

/** Keeps which records are shown in the page's address, so that they can be linked to. */
export function useSelectionAddress(): readonly [
  RecordSelection,
  (changes: Partial<RecordSelection>) => void,
] {
  const [params, setParams] = useSearchParams();
  const filter = params.get("filter") ?? "";
  const device = params.get("device") ?? "";
  const since = params.get("since") ?? "";
  const until = params.get("until") ?? "";
  const selection = useMemo(() => ({ filter, device, since, until }), [filter, device, since, until]);
  const select = useCallback(
    (changes: Partial<RecordSelection>) =>
      setParams(
        (before) => {
          const after = new URLSearchParams(before);
          for (const [name, value] of Object.entries(changes)) {
            if (value === "") after.delete(name);
            else after.set(name, value);
          }
          return after;
        },
        { replace: true },
      ),
    [setParams],
  );
  return [selection, select];
}
