import { Checkbox, UnstyledButton } from "@mantine/core";
import { ArrowDown, ArrowUp } from "lucide-react";
import { memo } from "react";
import { Link } from "wouter";
import { LongTable } from "../../../components/long-table.tsx";
import { RelativeTime } from "../../../components/relative-time.tsx";
import type { DeviceRow } from "../shared/device-row.ts";
import type { DeviceOrder, SortableColumn } from "./device-order.ts";
import styles from "./device-table.module.css";

const rowHeight = 38;

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

/** Properties of the table. */
interface DeviceTableProps {
  readonly rows: readonly DeviceRow[];
  /** More rows can be read. */
  readonly hasMore: boolean;
  readonly onNearEnd: () => void;
  readonly order: DeviceOrder;
  readonly onSort: (order: DeviceOrder) => void;
  readonly selected: ReadonlySet<string>;
  readonly onSelect: (id: string, selected: boolean) => void;
  readonly onSelectAll: (selected: boolean) => void;
}

/** A list of devices of any length. */
export function DeviceTable(props: DeviceTableProps) {
  const { rows, hasMore, onNearEnd, order, onSort, selected, onSelect, onSelectAll } = props;
  const allSelected = rows.length > 0 && selected.size >= rows.length;
  return (
    <LongTable
      label="Devices"
      frameLabel="List of devices"
      className={styles.devices}
      rowHeight={rowHeight}
      count={rows.length}
      hasMore={hasMore}
      onNearEnd={onNearEnd}
      head={
        <>
          <th scope="col" aria-label="Selection">
            <Checkbox
              size="xs"
              aria-label="Select all devices"
              checked={allSelected}
              indeterminate={selected.size > 0 && !allSelected}
              onChange={(event) => onSelectAll(event.currentTarget.checked)}
            />
          </th>
          {columns.map(({ label, sort, number }) => {
            const direction =
              sort === order.column ? (order.descending ? "descending" : "ascending") : "none";
            return sort === null ? (
              <th key={label} scope="col">
                {label}
              </th>
            ) : (
              <th key={label} scope="col" className={number && styles.number} aria-sort={direction}>
                <UnstyledButton
                  fz="inherit"
                  fw="inherit"
                  maw="100%"
                  onClick={() => onSort({ column: sort, descending: direction === "ascending" })}
                >
                  {label} {direction === "ascending" && <ArrowUp size={13} />}
                  {direction === "descending" && <ArrowDown size={13} />}
                </UnstyledButton>
              </th>
            );
          })}
        </>
      }
      rowAt={(index, slot) => {
        const row = rows[index];
        return row === undefined ? null : (
          <Row key={slot} row={row} index={index} selected={selected.has(row.id)} onSelect={onSelect} />
        );
      }}
    />
  );
}

interface RowProps {
  readonly row: DeviceRow;
  readonly index: number;
  readonly selected: boolean;
  readonly onSelect: (id: string, selected: boolean) => void;
}

// Plain elements: a row is drawn dozens of times in each frame of fast scrolling, and components of a library cost many
// times as much.
const Row = memo(function Row({ row, index, selected, onSelect }: RowProps) {
  return (
    <tr aria-rowindex={index + 2} data-selected={selected || undefined}>
      <td>
        <input
          type="checkbox"
          aria-label={`Select ${row.id}`}
          checked={selected}
          onChange={(event) => onSelect(row.id, event.currentTarget.checked)}
        />
      </td>
      <td>
        <Link href={`/devices/${row.id}`}>{row.id}</Link>
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
