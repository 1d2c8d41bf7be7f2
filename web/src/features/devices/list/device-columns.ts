import { ShadowPointer } from "@devmesh/contracts/model/acl";
import { membersOf } from "@devmesh/contracts/model/json-pointer";
import type { DeviceTableRow } from "../shared/device-row.ts";
import { firmwareHint } from "../shared/device-row.ts";
import type { SortableColumn } from "./device-order.ts";

/** A column of the list beside the id, which is always there. */
export interface DeviceColumn {
  /** Its name in the address; a JSON pointer into the reported state begins with a slash. */
  readonly name: string;
  readonly label: string;
  readonly sort: SortableColumn | null;
  /** Width in the grid. */
  readonly width: string;
  readonly isNumber?: true;
  /** Tooltip of the heading. */
  readonly hint?: string;
  /** Its text in a file. */
  readonly text: (row: DeviceTableRow) => string;
}

/** Columns that each device has. */
export const builtInColumns: readonly DeviceColumn[] = [
  { name: "name", label: "Name", sort: "name", width: "minmax(7rem, 1.4fr)", text: ({ name }) => name ?? "" },
  {
    name: "last_seen",
    label: "Last seen",
    sort: "lastSeen",
    width: "7rem",
    text: ({ online, lastSeen }) => (online ? "online" : (lastSeen ?? "never")),
  },
  {
    name: "labels",
    label: "Labels",
    sort: null,
    width: "minmax(6rem, 1.2fr)",
    text: ({ labels }) => labels.join(" "),
  },
  {
    name: "version",
    label: "Version",
    sort: "firmware",
    width: "minmax(4.5rem, 0.6fr)",
    hint: firmwareHint,
    text: ({ firmware }) => firmware ?? "",
  },
  {
    name: "shadow",
    label: "Shadow",
    sort: "shadowVersion",
    width: "4.5rem",
    isNumber: true,
    text: ({ shadowVersion }) => String(shadowVersion),
  },
  { name: "created", label: "Created", sort: "created", width: "7rem", text: ({ createdAt }) => createdAt },
];

/** Columns that are shown until people choose others, as in the address. */
export const usualColumns = builtInColumns.map(({ name }) => name).join(",");

/** Columns that give way where the list is narrow, the first of them first. */
const dispensable = ["created", "shadow", "labels", "version"];

/** Width of a row beside its columns: the selection, the id, and both edges, in pixels. */
const besideColumns = 24 + 144 + 2 * 24;

/** Space between columns, in pixels. */
const columnGap = 16;

/** The columns that have room in a list of some width in pixels, those of the reported state among them. */
export function columnsWithin(columns: readonly DeviceColumn[], width: number): readonly DeviceColumn[] {
  const needed = (shown: readonly DeviceColumn[]) =>
    shown.reduce((sum, column) => sum + columnGap + leastWidth(column), besideColumns + columnGap);
  let shown = columns;
  for (const name of dispensable)
    if (needed(shown) > width) shown = shown.filter((column) => column.name !== name);
  return shown;
}

/** In pixels, of a root font of 16. */
function leastWidth({ width }: DeviceColumn): number {
  return 16 * Number(/[\d.]+/.exec(width)?.[0] ?? 0);
}

/** Most columns of one list. */
export const mostColumns = 16;

/** The columns in a value of the address; what is none is left out. */
export function columnsIn(value: string): readonly DeviceColumn[] {
  return [...new Set(value.split(","))]
    .flatMap((name) => {
      const builtIn = builtInColumns.find((column) => column.name === name);
      return builtIn ?? (isReportedPointer(name) ? reportedColumn(name) : []);
    })
    .slice(0, mostColumns);
}

/** Pointers of the reported values among the columns. */
export function pointersOf(columns: readonly DeviceColumn[]): readonly string[] {
  return columns.map(({ name }) => name).filter((name) => name.startsWith("/"));
}

/** Whether a text is a pointer into the reported state, without a comma, which separates columns in the address. */
export function isReportedPointer(text: string): boolean {
  return !text.includes(",") && text.length > 1 && ShadowPointer.safeParse(`/state/reported${text}`).success;
}

function reportedColumn(pointer: string): DeviceColumn {
  return {
    name: pointer,
    label: membersOf(pointer).join("."),
    sort: null,
    width: "minmax(5rem, 0.8fr)",
    hint: `Reported at ${pointer}`,
    text: ({ values }) => values[pointer] ?? "",
  };
}
