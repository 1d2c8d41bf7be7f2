import type { Device } from "@devmesh/contracts/model/device";
import { firmwareVersion } from "@devmesh/contracts/model/fleet";
import { labelsOf } from "@devmesh/contracts/model/labels";

/** The properties of a device in the list, and no others: a page holds up to 50,000 rows. */
export interface DeviceTableRow {
  readonly id: string;
  readonly name: string | null;
  readonly labels: readonly string[];
  readonly online: boolean;
  /** RFC 3339; null before the first connection. */
  readonly lastSeen: string | null;
  readonly createdAt: string;
  /** The reported version of the firmware; null for none. */
  readonly firmware: string | null;
  readonly shadowVersion: number;
}

/** The row of a device. */
export function rowOf({ id, name, online, last_seen, created_at, shadow }: Device): DeviceTableRow {
  return {
    id,
    name,
    labels: labelsOf(shadow.tags),
    online,
    lastSeen: last_seen,
    createdAt: created_at,
    firmware: firmwareVersion(shadow.state.reported),
    shadowVersion: shadow.version,
  };
}

/** Where the version of the firmware comes from, for a tooltip. */
export const firmwareHint =
  "Version of the firmware, as the device reports it in ota.fw_version of its shadow";

/** Whether the server's `filter` would find the row: a substring of id, name or a label, case-sensitive. */
export function matchesFilter({ id, name, labels }: DeviceTableRow, filter: string): boolean {
  return (
    id.includes(filter) || name?.includes(filter) === true || labels.some((label) => label.includes(filter))
  );
}
