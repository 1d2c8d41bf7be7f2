import { useCallback } from "react";
import { useSearchParams } from "wouter";

/** Keeps what a list is narrowed by in the page's address, so that it can be linked to. */
export function useFilterAddress(): readonly [string, (filter: string) => void] {
  const [params, setParams] = useSearchParams();
  const change = useCallback(
    (filter: string) => setParams(filter === "" ? {} : { filter }, { replace: true }),
    [setParams],
  );
  return [params.get("filter") ?? "", change];
}
