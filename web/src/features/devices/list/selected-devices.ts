import type { DeviceRow } from "../shared/device-row.ts";

/** Which devices of a list are selected. */
export type SelectedDevices =
  | { readonly kind: "some"; readonly ids: ReadonlySet<string> }
  /** All matching devices, unread ones included, except these. */
  | { readonly kind: "all"; readonly except: ReadonlySet<string> };

const nothing: ReadonlySet<string> = new Set();

export const noneSelected: SelectedDevices = { kind: "some", ids: nothing };
export const allSelected: SelectedDevices = { kind: "all", except: nothing };

/** The selection with a device added or taken out. */
export function withDevice(selected: SelectedDevices, id: string, isSelected: boolean): SelectedDevices {
  if (selected.kind === "some") return { kind: "some", ids: changed(selected.ids, id, isSelected) };
  return { kind: "all", except: changed(selected.except, id, !isSelected) };
}

/** The devices that are selected out of those in the list: what has left it is not worked on unseen. */
export function selectedIn(selected: SelectedDevices, rows: readonly DeviceRow[]): ReadonlySet<string> {
  if (selected.kind === "some" && selected.ids.size === 0) return nothing;
  const ids = new Set<string>();
  for (const { id } of rows) {
    if (selected.kind === "some" ? selected.ids.has(id) : !selected.except.has(id)) ids.add(id);
  }
  return ids;
}

function changed(ids: ReadonlySet<string>, id: string, isIn: boolean): ReadonlySet<string> {
  const after = new Set(ids);
  if (isIn) after.add(id);
  else after.delete(id);
  return after;
}
