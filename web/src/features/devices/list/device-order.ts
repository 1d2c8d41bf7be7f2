import type { DeviceListOrder } from "@devmesh/contracts/model/device";
import type { DeviceTableRow } from "../shared/device-row.ts";

/** Columns that the list can be sorted by. */
export const sortableColumns = ["created", "id", "name", "lastSeen", "firmware", "shadowVersion"] as const;
export type SortableColumn = (typeof sortableColumns)[number];

/** How the list is sorted. */
export interface DeviceOrder {
  readonly column: SortableColumn;
  readonly descending: boolean;
}

/** Orders of the server by the columns that it sorts by, ascending and descending: any other needs the whole list. */
const serverOrders: Readonly<Partial<Record<SortableColumn, readonly [DeviceListOrder, DeviceListOrder]>>> = {
  created: ["asc", "desc"],
  firmware: ["version", "-version"],
  lastSeen: ["last_seen", "-last_seen"],
};

/** What a list is asked for in; null where the server does not sort by the column. */
export function serverOrderOf({ column, descending }: DeviceOrder): DeviceListOrder | null {
  return serverOrders[column]?.[descending ? 1 : 0] ?? null;
}

/** The order of a column when it is first chosen: of devices, the newest first. */
export function usualOrder(column: SortableColumn): DeviceOrder {
  return { column, descending: column === "created" };
}

type SortValue = string | number | null;

const comparables: Readonly<Record<SortableColumn, (row: DeviceTableRow) => SortValue>> = {
  created: (row) => row.createdAt,
  id: (row) => row.id,
  name: (row) => row.name,
  lastSeen: (row) => row.lastSeen,
  firmware: (row) => row.firmware,
  shadowVersion: (row) => row.shadowVersion,
};

/**
 * The rows in an order, equal ones by id; those without a value last, or where the server sorts, as there: as less
 * than the others, and equal ones by their creation. `before`, the result of an earlier call, is
 * where sorting starts: sorting an almost sorted list takes one pass, so 50,000 rows can be sorted at each change.
 */
export function inOrder(
  rows: readonly DeviceTableRow[],
  { column, descending }: DeviceOrder,
  before: readonly DeviceTableRow[],
): DeviceTableRow[] {
  const value = comparables[column];
  const rest = new Map(rows.map((row) => [row.id, row]));
  const nearly: DeviceTableRow[] = [];
  for (const { id } of before) {
    const row = rest.get(id);
    if (row === undefined) continue;
    nearly.push(row);
    rest.delete(id);
  }
  for (const row of rest.values()) nearly.push(row);
  const sign = descending ? -1 : 1;
  const asServer = serverOrders[column] !== undefined;
  return nearly.sort((one, other) => {
    const first = value(one);
    const second = value(other);
    if (first === second) {
      if (asServer && one.createdAt !== other.createdAt)
        return one.createdAt < other.createdAt ? -sign : sign;
      return one.id < other.id ? -1 : 1;
    }
    if (first === null) return asServer ? -sign : 1;
    if (second === null) return asServer ? sign : -1;
    return first < second ? -sign : sign;
  });
}
