import { Checkbox } from "@mantine/core";
import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, useEffect, useRef } from "react";
import { Link } from "wouter";
import { Icon } from "../elements/icon.tsx";
import { RelativeTime } from "../elements/relative-time.tsx";
import type { DeviceOrder, SortableColumn } from "./device-order.ts";
import type { DeviceRow } from "./device-row.ts";
import styles from "./device-table.module.css";

/** Height of a row in pixels, as the style sheet has it. */
const rowHeight = 38;

/** Rows that a window of usual height never exceeds, so that it is not divided anew while it scrolls. */
const leastSlots = 64;

/** Rows before the end at which more are read. */
const readAhead = 60;

const columns: readonly {
  readonly label: string;
  readonly sort: SortableColumn | null;
  readonly number?: true;
}[] = [
  { label: "ID", sort: "id" },
  { label: "Name", sort: "name" },
  { label: "Last seen", sort: "lastSeen" },
  { label: "Labels", sort: null },
  { label: "Version", sort: "firmware" },
  { label: "Shadow", sort: "shadowVersion", number: true },
  { label: "Created", sort: "created" },
];

/** What the table shows and tells. */
interface DeviceTableProps {
  readonly rows: readonly DeviceRow[];
  /** More rows follow than are there. */
  readonly hasMore: boolean;
  readonly onNearEnd: () => void;
  readonly order: DeviceOrder;
  readonly onSort: (order: DeviceOrder) => void;
  readonly selected: ReadonlySet<string>;
  readonly onSelect: (id: string, selected: boolean) => void;
  readonly onSelectAll: (selected: boolean) => void;
}

/** Devices in a window that scrolls: however many there are, only those in sight are drawn. */
export function DeviceTable(props: DeviceTableProps) {
  const { rows, hasMore, onNearEnd, order, onSort, selected, onSelect, onSelectAll } = props;
  const frame = useRef<HTMLDivElement>(null);
  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => frame.current,
    estimateSize: () => rowHeight,
    overscan: 6,
    scrollMargin: rowHeight,
  });
  const shown = virtualizer.getVirtualItems();
  // One length for all, not a place for each row: the browser's work would grow with every place that was ever taken.
  const above = (shown[0]?.start ?? rowHeight) - rowHeight;
  // Rows that scroll out lend their elements to those that scroll in: making new ones costs most of a frame of fast scrolling.
  const slots = Math.max(leastSlots, shown.length);
  const lastShown = shown.at(-1)?.index ?? 0;
  useEffect(() => {
    if (hasMore && lastShown >= rows.length - readAhead) onNearEnd();
  }, [hasMore, lastShown, rows.length, onNearEnd]);
  const allSelected = rows.length > 0 && selected.size >= rows.length;

  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by the keyboard
    <section ref={frame} className={styles.frame} aria-label="List of devices" tabIndex={0}>
      <table className={styles.table} aria-label="Devices" aria-rowcount={hasMore ? -1 : rows.length + 1}>
        <thead className={styles.head}>
          <tr aria-rowindex={1} className={styles.row}>
            <th scope="col" aria-label="Selection">
              <Checkbox
                size="xs"
                aria-label="Select all devices"
                checked={allSelected}
                indeterminate={selected.size > 0 && !allSelected}
                onChange={(event) => onSelectAll(event.currentTarget.checked)}
              />
            </th>
            {columns.map(({ label, sort, number }) => (
              <th
                key={label}
                scope="col"
                className={number && styles.number}
                {...(sort !== null && { "aria-sort": sortOf(sort, order) })}
              >
                {sort === null ? (
                  label
                ) : (
                  <SortButton label={label} column={sort} order={order} onSort={onSort} />
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody className={styles.body} style={{ height: virtualizer.getTotalSize(), paddingTop: above }}>
          {shown.map(({ index }) => {
            const row = rows[index];
            return row === undefined ? null : (
              <Row
                key={index % slots}
                row={row}
                index={index}
                selected={selected.has(row.id)}
                onSelect={onSelect}
              />
            );
          })}
        </tbody>
      </table>
    </section>
  );
}

function sortOf(column: SortableColumn, order: DeviceOrder): "ascending" | "descending" | "none" {
  if (column !== order.column) return "none";
  return order.descending ? "descending" : "ascending";
}

interface SortButtonProps {
  readonly label: string;
  readonly column: SortableColumn;
  readonly order: DeviceOrder;
  readonly onSort: (order: DeviceOrder) => void;
}

function SortButton({ label, column, order, onSort }: SortButtonProps) {
  const active = column === order.column;
  return (
    <button
      type="button"
      className={styles.sort}
      onClick={() => onSort({ column, descending: active && !order.descending })}
    >
      {label}
      {active && <Icon name={order.descending ? "descending" : "ascending"} size={13} />}
    </button>
  );
}

interface RowProps {
  readonly row: DeviceRow;
  readonly index: number;
  readonly selected: boolean;
  readonly onSelect: (id: string, selected: boolean) => void;
}

// Plain elements: a row is drawn dozens of times in each frame of fast scrolling, and components of a library cost many times as much.
const Row = memo(function Row({ row, index, selected, onSelect }: RowProps) {
  return (
    <tr aria-rowindex={index + 2} data-selected={selected || undefined} className={styles.row}>
      <td>
        <input
          type="checkbox"
          aria-label={`Select ${row.id}`}
          checked={selected}
          onChange={(event) => onSelect(row.id, event.currentTarget.checked)}
        />
      </td>
      <td>
        <Link href={`/devices/${row.id}`} className={styles.link}>
          {row.id}
        </Link>
      </td>
      <td title={row.name ?? undefined}>{row.name}</td>
      <td>
        <span className={styles.dot} data-online={row.online || undefined} aria-hidden="true" />
        {row.online ? "online" : <RelativeTime at={row.lastSeen} />}
      </td>
      <td title={row.labels.join(", ") || undefined}>
        {row.labels.map((label) => (
          <span key={label} className={styles.label}>
            {label}
          </span>
        ))}
      </td>
      <td>{row.firmware}</td>
      <td className={styles.number}>{row.shadowVersion}</td>
      <td>
        <RelativeTime at={row.createdAt} />
      </td>
    </tr>
  );
});
