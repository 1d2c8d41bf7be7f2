import { Table, type TableProps, type TableTdProps, VisuallyHidden } from "@mantine/core";
import type { ReactNode } from "react";
import { FoldingTable } from "./folding-table.tsx";

/** A column of a {@link DataTable}. */
export interface Column<T> {
  readonly heading: string;
  /** Only screen readers get the heading. */
  readonly hidesHeading?: true;
  /** Its cells name their rows; they have no style. */
  readonly namesRow?: true;
  readonly cell: (row: T) => ReactNode;
  /** Style of its cells. */
  readonly style?: TableTdProps;
}

/** Properties of {@link DataTable}, and others of the table. */
interface DataTableProps<T> extends TableProps {
  readonly label: string;
  /** Width below which it folds, in pixels; see {@link FoldingTable}. */
  readonly minWidth: number;
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  /** Unique among the rows. */
  readonly keyOf: (row: T) => string;
}

/** A table with one row for each item. */
export function DataTable<T>({ label, minWidth, columns, rows, keyOf, ...table }: DataTableProps<T>) {
  return (
    <FoldingTable minWidth={minWidth} aria-label={label} {...table}>
      <Table.Thead>
        <Table.Tr>
          {columns.map(({ heading, hidesHeading, style }) => (
            <Table.Th key={heading} scope="col" ta={style?.ta}>
              {hidesHeading ? <VisuallyHidden>{heading}</VisuallyHidden> : heading}
            </Table.Th>
          ))}
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {rows.map((row) => (
          <Table.Tr key={keyOf(row)}>
            {columns.map(({ heading, hidesHeading, namesRow, cell, style }) => {
              const Cell = namesRow ? Table.Th : Table.Td;
              return (
                <Cell
                  key={heading}
                  {...(namesRow && { scope: "row" })}
                  {...(!hidesHeading && { "data-label": heading })}
                  {...style}
                >
                  {cell(row)}
                </Cell>
              );
            })}
          </Table.Tr>
        ))}
      </Table.Tbody>
    </FoldingTable>
  );
}
