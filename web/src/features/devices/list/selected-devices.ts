import type { DeviceTableRow } from "../shared/device-row.ts";

/** Which devices of a list are selected. */
export type SelectedDevices =
  | { readonly kind: "some"; readonly ids: ReadonlySet<string> }
  /** All matching devices, unread ones included, except these. */
  | { readonly kind: "all"; readonly except: ReadonlySet<string> };

const nothing: ReadonlySet<string> = new Set();

export const noneSelected: SelectedDevices = { kind: "some", ids: nothing };
export const allSelected: SelectedDevices = { kind: "all", except: nothing };

/** The selection with devices added or taken out. */
export function withDevices(
  selected: SelectedDevices,
  ids: readonly string[],
  areSelected: boolean,
): SelectedDevices {
  if (selected.kind === "some") return { kind: "some", ids: changed(selected.ids, ids, areSelected) };
  return { kind: "all", except: changed(selected.except, ids, !areSelected) };
}

/** The ids from one device of a list to another, both included; only `to` if the list lacks `from`. */
export function idsBetween(
  rows: readonly DeviceTableRow[],
  from: string | null,
  to: string,
): readonly string[] {
  const ids = rows.map(({ id }) => id);
  const [start, end] = [ids.indexOf(from ?? ""), ids.indexOf(to)];
  return start < 0 || end < 0 ? [to] : ids.slice(Math.min(start, end), Math.max(start, end) + 1);
}

/** The devices that are selected out of those in the list: what has left it is not worked on unseen. */
export function selectedIn(selected: SelectedDevices, rows: readonly DeviceTableRow[]): ReadonlySet<string> {
  if (selected.kind === "some" && selected.ids.size === 0) return nothing;
  const ids = new Set<string>();
  for (const { id } of rows) {
    if (selected.kind === "some" ? selected.ids.has(id) : !selected.except.has(id)) ids.add(id);
  }
  return ids;
}

function changed(before: ReadonlySet<string>, ids: readonly string[], areIn: boolean): ReadonlySet<string> {
  const after = new Set(before);
  for (const id of ids) {
    if (areIn) after.add(id);
    else after.delete(id);
  }
  return after;
}
