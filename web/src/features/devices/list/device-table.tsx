import { Checkbox, UnstyledButton } from "@mantine/core";
import { ArrowDown, ArrowUp } from "lucide-react";
import { type MouseEvent, memo } from "react";
import { Link } from "wouter";
import { LongTable } from "../../../components/long-table.tsx";
import { RelativeTime } from "../../../components/relative-time.tsx";
import { type DeviceTableRow, firmwareHint } from "../shared/device-row.ts";
import { type DeviceOrder, type SortableColumn, usualOrder } from "./device-order.ts";
import styles from "./device-table.module.css";

const rowHeight = 37;

const columns: readonly {
  readonly label: string;
  readonly sort: SortableColumn | null;
  readonly number?: true;
  /** Tooltip of the heading. */
  readonly hint?: string;
}[] = [
  { label: "ID", sort: "id" },
  { label: "Name", sort: "name" },
  { label: "Last seen", sort: "lastSeen" },
  { label: "Labels", sort: null },
  { label: "Version", sort: "firmware", hint: firmwareHint },
  { label: "Shadow", sort: "shadowVersion", number: true },
  { label: "Created", sort: "created" },
];

/** Selects a device or not; with `range` also those between it and the one before. A stable function. */
export type SelectDevice = (id: string, selected: boolean, range: boolean) => void;

/** Properties of the table. */
interface DeviceTableProps {
  readonly rows: readonly DeviceTableRow[];
  /** More rows can be read. */
  readonly hasMore: boolean;
  readonly onNearEnd: () => void;
  readonly order: DeviceOrder;
  readonly onSort: (order: DeviceOrder) => void;
  readonly selected: ReadonlySet<string>;
  readonly onSelect: SelectDevice;
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
          {columns.map(({ label, sort, number, hint }) => {
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
                  title={hint}
                  onClick={() =>
                    onSort(
                      sort === order.column ? { ...order, descending: !order.descending } : usualOrder(sort),
                    )
                  }
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

interface DeviceRowProps {
  readonly row: DeviceTableRow;
  readonly index: number;
  readonly selected: boolean;
  readonly onSelect: SelectDevice;
}

/** Clicks the link of a row, except where the row was clicked on a control or to select text. */
function openRow(event: MouseEvent<HTMLElement>) {
  const isControl = (event.target as Element).closest("a, input") !== null;
  if (isControl || getSelection()?.isCollapsed === false) return;
  // With the same keys held, so that it can open another tab.
  event.currentTarget.querySelector("a")?.dispatchEvent(new window.MouseEvent("click", event.nativeEvent));
}

// Plain elements: a row is drawn dozens of times in each frame of fast scrolling, and components of a library cost many
// times as much.
const Row = memo(function Row({ row, index, selected, onSelect }: DeviceRowProps) {
  return (
    <tr aria-rowindex={index + 2} data-selected={selected || undefined} onClick={openRow}>
      <td>
        <input
          type="checkbox"
          aria-label={`Select ${row.id}`}
          checked={selected}
          onChange={({ currentTarget, nativeEvent }) =>
            onSelect(row.id, currentTarget.checked, (nativeEvent as globalThis.MouseEvent).shiftKey)
          }
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
