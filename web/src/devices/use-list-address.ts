import { useCallback, useMemo } from "react";
import { useSearchParams } from "wouter";
import { type DeviceOrder, sortableColumns } from "./device-order.ts";
import type { DeviceSelection } from "./device-pages.ts";

/** What the list shows, as it stands in the page's address. */
interface ListAddress {
  readonly selection: DeviceSelection;
  readonly order: DeviceOrder;
  readonly select: (selection: DeviceSelection) => void;
  readonly sort: (order: DeviceOrder) => void;
}

/** Keeps selection and order in the page's address, so that both can be linked to. */
export function useListAddress(): ListAddress {
  const [params, setParams] = useSearchParams();
  const filter = params.get("filter") ?? "";
  const online = { true: true, false: false }[params.get("online") ?? ""] ?? null;
  const column = sortableColumns.find((name) => name === params.get("sort")) ?? "created";
  const descending = params.get("direction") === "descending";

  const selection = useMemo(() => ({ filter, online }), [filter, online]);
  const order = useMemo(() => ({ column, descending }), [column, descending]);
  const change = useCallback(
    (values: Readonly<Record<string, string | null>>) =>
      setParams(
        (before) => {
          const after = new URLSearchParams(before);
          for (const [name, value] of Object.entries(values)) {
            if (value === null || value === "") after.delete(name);
            else after.set(name, value);
          }
          return after;
        },
        { replace: true },
      ),
    [setParams],
  );
  return {
    selection,
    order,
    select: useCallback(
      (to) => change({ filter: to.filter, online: to.online === null ? null : String(to.online) }),
      [change],
    ),
    sort: useCallback(
      (to) =>
        change({
          sort: to.column === "created" ? null : to.column,
          direction: to.descending ? "descending" : null,
        }),
      [change],
    ),
  };
}
