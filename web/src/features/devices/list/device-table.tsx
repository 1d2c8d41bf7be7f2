import { Checkbox, UnstyledButton } from "@mantine/core";
import { ArrowDown, ArrowUp, TriangleAlert } from "lucide-react";
import { type CSSProperties, type KeyboardEvent, type MouseEvent, memo, type ReactNode } from "react";
import { Link } from "wouter";
import { LongTable } from "../../../components/long-table.tsx";
import { RelativeTime } from "../../../components/relative-time.tsx";
import type { DeviceTableRow } from "../shared/device-row.ts";
import type { DeviceColumn } from "./device-columns.ts";
import { type DeviceOrder, usualOrder } from "./device-order.ts";
import styles from "./device-table.module.css";

const rowHeight = 37;
const phoneRowHeight = 64;

/** Selects a device or not; with `range` also those between it and the one before. A stable function. */
export type SelectDevice = (id: string, selected: boolean, range: boolean) => void;

/** Properties of the table. */
interface DeviceTableProps {
  readonly rows: readonly DeviceTableRow[];
  readonly columns: readonly DeviceColumn[];
  /** Rows have two lines. */
  readonly isPhone: boolean;
  /** More rows can be read. */
  readonly hasMore: boolean;
  readonly onNearEnd: () => void;
  readonly order: DeviceOrder;
  readonly onSort: (order: DeviceOrder) => void;
  readonly selected: ReadonlySet<string>;
  readonly onSelect: SelectDevice;
  readonly onSelectAll: (selected: boolean) => void;
  /** Id of the device in the side panel. */
  readonly opened: string;
  /** Opens a device in the side panel. A stable function. */
  readonly onOpen: (id: string) => void;
}

/** A list of devices of any length. */
export function DeviceTable(props: DeviceTableProps) {
  const { rows, columns, isPhone, hasMore, onNearEnd, order, onSort } = props;
  const { selected, onSelect, onSelectAll, opened, onOpen } = props;
  const allSelected = rows.length > 0 && selected.size >= rows.length;
  const widths = isPhone
    ? "24px minmax(0, 1fr) 7rem"
    : `24px minmax(9rem, 1.4fr) ${columns.map(({ width }) => width).join(" ")}`;
  const sortable = { label: "ID", sort: "id", isNumber: undefined, hint: undefined } as const;
  const shown = isPhone ? columns.filter(({ name }) => name === "last_seen") : columns;
  return (
    <LongTable
      label="Devices"
      frameLabel="List of devices"
      className={styles.devices}
      style={{ "--columns": widths } as CSSProperties}
      rowHeight={isPhone ? phoneRowHeight : rowHeight}
      count={rows.length}
      hasMore={hasMore}
      onNearEnd={onNearEnd}
      head={
        <>
          <th scope="col" aria-label="Selection">
            <Checkbox
              aria-label="Select all devices"
              checked={allSelected}
              indeterminate={selected.size > 0 && !allSelected}
              onChange={(event) => onSelectAll(event.currentTarget.checked)}
            />
          </th>
          {[sortable, ...shown].map(({ label, sort, isNumber, hint }) => {
            const direction =
              sort === order.column ? (order.descending ? "descending" : "ascending") : "none";
            return sort === null ? (
              <th key={label} scope="col" title={hint}>
                {label}
              </th>
            ) : (
              <th key={label} scope="col" className={isNumber && styles.number} aria-sort={direction}>
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
          <Row
            key={slot}
            row={row}
            columns={shown}
            isPhone={isPhone}
            index={index}
            selected={selected.has(row.id)}
            opened={opened === row.id}
            onSelect={onSelect}
            onOpen={onOpen}
          />
        );
      }}
    />
  );
}

interface DeviceRowProps {
  readonly row: DeviceTableRow;
  readonly columns: readonly DeviceColumn[];
  readonly isPhone: boolean;
  readonly index: number;
  readonly selected: boolean;
  readonly opened: boolean;
  readonly onSelect: SelectDevice;
  readonly onOpen: (id: string) => void;
}

/** Moves the focus to the link of a row beside, by a key without others. */
function moveFocus({ key, currentTarget }: KeyboardEvent<HTMLElement>): boolean {
  const isDown = key === "j" || key === "ArrowDown";
  if (!isDown && key !== "k" && key !== "ArrowUp") return false;
  const beside = isDown ? currentTarget.nextElementSibling : currentTarget.previousElementSibling;
  beside?.querySelector<HTMLElement>("a")?.focus();
  return true;
}

// Plain elements: a row is drawn dozens of times in each frame of fast scrolling, and components of a library cost many
// times as much.
const Row = memo(function Row(props: DeviceRowProps) {
  const { row, columns, isPhone, index, selected, opened, onSelect, onOpen } = props;
  const onKeyDown = (event: KeyboardEvent<HTMLElement>) => {
    if (event.metaKey || event.ctrlKey || event.altKey) return;
    if (moveFocus(event)) event.preventDefault();
    else if (event.key === " " && event.target instanceof HTMLAnchorElement) {
      event.preventDefault();
      onOpen(row.id);
    } else if (event.key === "x" || event.key === "X") onSelect(row.id, !selected, event.shiftKey);
  };
  const onClick = (event: MouseEvent<HTMLElement>) => {
    const isControl = (event.target as Element).closest("a, input") !== null;
    if (isControl || getSelection()?.isCollapsed === false) return;
    const link = event.currentTarget.querySelector("a");
    // With another key held the click is one on the link, so that it can open another tab.
    if (event.metaKey || event.ctrlKey || event.shiftKey)
      link?.dispatchEvent(new window.MouseEvent("click", event.nativeEvent));
    else {
      link?.focus({ preventScroll: true });
      onOpen(row.id);
    }
  };
  const nameAndVersion = [row.name, row.firmware].filter(Boolean).join(" · ");
  const problem = row.problems !== undefined && row.problems.length > 0 && (
    <TriangleAlert
      size={14}
      className={styles.problem}
      aria-label={`Problem: ${row.problems.join(", ").replaceAll("_", " ")}`}
    />
  );
  const dot = <span className={styles.dot} data-online={row.online || undefined} aria-hidden="true" />;
  return (
    <tr
      aria-rowindex={index + 2}
      data-selected={selected || undefined}
      data-open={opened || undefined}
      onClick={onClick}
      onKeyDown={onKeyDown}
    >
      <td>
        <input
          type="checkbox"
          // The row's link is its only stop; X selects.
          tabIndex={-1}
          aria-label={`Select ${row.id}`}
          checked={selected}
          onChange={({ currentTarget, nativeEvent }) =>
            onSelect(row.id, currentTarget.checked, (nativeEvent as globalThis.MouseEvent).shiftKey)
          }
        />
      </td>
      <td className={isPhone ? styles.lines : styles.id}>
        {dot}
        <Link href={`/devices/${row.id}`}>{row.id}</Link>
        {problem}
        {isPhone && <small title={nameAndVersion}>{nameAndVersion}</small>}
      </td>
      {columns.map((column) => (
        <td key={column.name} className={column.isNumber && styles.number} title={titleOf(row, column)}>
          {cellOf(row, column)}
        </td>
      ))}
    </tr>
  );
});

function titleOf(row: DeviceTableRow, { name, text }: DeviceColumn): string | undefined {
  return name === "last_seen" || name === "created" ? undefined : text(row) || undefined;
}

function cellOf(row: DeviceTableRow, { name, text }: DeviceColumn): ReactNode {
  switch (name) {
    case "last_seen":
      return row.online ? "online" : <RelativeTime at={row.lastSeen} />;
    case "created":
      return <RelativeTime at={row.createdAt} />;
    case "labels":
      return row.labels.map((label) => (
        <span key={label} className={styles.label}>
          {label}
        </span>
      ));
    case "version":
      return <code className={styles.code}>{row.firmware}</code>;
    default:
      return text(row);
  }
}
