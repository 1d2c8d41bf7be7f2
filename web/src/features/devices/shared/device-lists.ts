import type { DeviceListItem, DeviceListOrder } from "@devmesh/contracts/model/device";
import type { DeviceCondition } from "@devmesh/contracts/model/device-condition";
import type { InfiniteData, QueryClient } from "@tanstack/react-query";
import { queryKeys } from "../../../api/query-keys.ts";
import { asksPresence, meets } from "./device-conditions.ts";
import { type DeviceTableRow, rowOf } from "./device-row.ts";

/** Which devices a list holds. */
export interface DeviceConditions {
  readonly condition: DeviceCondition;
  /** Pointers of reported values that its rows have. */
  readonly pointers: readonly string[];
}

/** Which devices a list holds, and its order at the server. */
export interface DeviceSelection extends DeviceConditions {
  readonly order: DeviceListOrder;
}

/** One page of the list as it came. */
export interface DevicePage {
  readonly rows: readonly DeviceTableRow[];
  /** Cursor of the next page; null at the end. */
  readonly next: string | null;
  /** Number of devices in all pages when this one was read; null if the server did not count them. */
  readonly total: number | null;
}

/** The pages of one list, as the query cache holds them. */
export type DevicePages = InfiniteData<DevicePage, string | null>;

/** A change of a device. */
export type DeviceChange =
  | {
      readonly kind: "row";
      readonly row: DeviceTableRow;
      /** For the values of a list's own columns. */
      readonly device?: DeviceListItem;
    }
  | { readonly kind: "presence"; readonly id: string; readonly online: boolean; readonly at: string }
  | { readonly kind: "deleted"; readonly id: string };

/** Changed pages, and the ids of devices that have to be read, as they may match the selection. */
export interface ChangedPages {
  readonly pages: DevicePages;
  readonly unknown: readonly string[];
}

/**
 * Applies changes, in their order, to the pages of a list; pages without a change keep their identity. A device that
 * now matches goes to the newest; while there are unread pages, those bring it unless it is newer than all.
 */
export function applyChanges(
  pages: DevicePages,
  selection: DeviceSelection,
  changes: readonly DeviceChange[],
): ChangedPages {
  const latest = new Map<string, DeviceChange>();
  const unknown = new Set<string>();
  const rowsById = rowsOf(pages, new Set(changes.map(idOf)));
  const additions = new Map<string, DeviceTableRow>();
  for (const change of changes) {
    const id = idOf(change);
    const before = latest.get(id) ?? { kind: "row", row: rowsById.get(id) };
    const known = before.kind === "row" ? before.row : undefined;
    if (change.kind === "presence") {
      if (known !== undefined) {
        latest.set(id, { kind: "row", row: { ...known, online: change.online, lastSeen: change.at } });
      } else if (asksPresence(selection.condition)) unknown.add(id);
    } else {
      latest.set(id, change);
      unknown.delete(id);
    }
  }
  for (const [id, change] of latest) {
    if (change.kind === "row" && !rowsById.has(id) && meets(change.row, selection.condition) === true)
      additions.set(id, change.row);
  }

  const changed = pages.pages.map((page) => {
    if (!page.rows.some(({ id }) => latest.has(id))) return page;
    const rows = page.rows.flatMap((row) => {
      const change = latest.get(row.id);
      if (change === undefined) return [row];
      if (change.kind !== "row" || meets(change.row, selection.condition) === false) return [];
      return [{ ...change.row, problems: change.row.problems ?? row.problems }];
    });
    return { ...page, rows };
  });
  const first = changed[0];
  const last = changed.at(-1);
  const isWhole = last?.next === null;
  const added = [...additions.values()];
  if (first !== undefined && selection.order === "desc") {
    const newest = first.rows[0]?.createdAt ?? "";
    const onTop = added.filter(({ createdAt }) => isWhole || createdAt > newest).reverse();
    if (onTop.length > 0) changed[0] = { ...first, rows: [...onTop, ...first.rows] };
  } else if (last !== undefined && isWhole && added.length > 0) {
    changed[changed.length - 1] = { ...last, rows: [...last.rows, ...added] };
  }
  return { pages: { ...pages, pages: changed }, unknown: isWhole ? [...unknown] : [] };
}

function idOf(change: DeviceChange): string {
  return change.kind === "row" ? change.row.id : change.id;
}

function rowsOf({ pages }: DevicePages, ids: ReadonlySet<string>): Map<string, DeviceTableRow> {
  const found = new Map<string, DeviceTableRow>();
  for (const { rows } of pages) {
    for (const row of rows) if (ids.has(row.id)) found.set(row.id, row);
  }
  return found;
}

/** Applies changes to all lists in the cache. Returns the ids of devices to be read. */
export function applyToLists(queries: QueryClient, changes: readonly DeviceChange[]): ReadonlySet<string> {
  const unknown = new Set<string>();
  for (const [queryKey, pages] of queries.getQueriesData<DevicePages>({ queryKey: queryKeys.deviceLists })) {
    if (pages === undefined) continue;
    const selection = queryKey[1] as DeviceSelection;
    const changed = applyChanges(
      pages,
      selection,
      changes.map((change) => withValues(change, selection)),
    );
    queries.setQueryData(queryKey, changed.pages);
    for (const id of changed.unknown) unknown.add(id);
  }
  return unknown;
}

/** The change with the values of a list's own columns. */
function withValues(change: DeviceChange, { pointers }: DeviceSelection): DeviceChange {
  if (change.kind !== "row" || change.device === undefined || pointers.length === 0) return change;
  return { ...change, row: rowOf(change.device, pointers) };
}
