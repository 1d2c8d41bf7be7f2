import type { SavedView } from "@devmesh/contracts/model/saved-view";
import { useSearch } from "wouter";
import { useApi } from "../../../api/api-context.tsx";
import { queryKeys } from "../../../api/query-keys.ts";
import { useReading } from "../../../api/use-reading.ts";

/** How often the views are read again, in milliseconds: no frame announces what another browser changes. */
const rereadMs = 30_000;

/** The saved views of the list of devices, by name; none until they are read. */
export function useSavedViews(): readonly SavedView[] {
  const api = useApi();
  const { data } = useReading({
    queryKey: queryKeys.savedViews,
    queryFn: ({ signal }) => api.call("listViews", { signal }),
    refetchInterval: rereadMs,
    refetchOnWindowFocus: "always",
    select: inOrder,
  });
  return data ?? none;
}

const none: readonly SavedView[] = [];

function inOrder(views: readonly SavedView[]): readonly SavedView[] {
  return views.toSorted((one, other) => one.name.localeCompare(other.name));
}

/** What a view saves of the shown address: its query without the device that is open beside the list. */
export function useViewQuery(): string {
  return viewQuery(useSearch());
}

/** The address of a saved view. */
export function addressOf({ query }: SavedView): string {
  return `/devices?${query}`;
}

/** Whether a saved view is what an address shows, whatever the order of its parameters. */
export function isView({ query }: SavedView, shown: string): boolean {
  return viewQuery(query) === shown;
}

function viewQuery(search: string): string {
  const params = new URLSearchParams(search);
  params.delete("peek");
  params.sort();
  return params.toString();
}
