import type { DeviceListItem } from "@devmesh/contracts/model/device";
import { firmwareVersion } from "@devmesh/contracts/model/fleet";
import { isJsonObject, type Json } from "@devmesh/contracts/model/json";
import { membersOf } from "@devmesh/contracts/model/json-pointer";
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
  /** Words for what is wrong; undefined where it is not known, as in frames. */
  readonly problems?: readonly string[] | undefined;
  /** Reported values by their JSON pointer, as text, for the columns that people chose. */
  readonly values: Readonly<Record<string, string>>;
}

/** The row of a device, with the reported values at `pointers`, such as "/app/mode". */
export function rowOf(device: DeviceListItem, pointers: readonly string[] = []): DeviceTableRow {
  const { id, name, online, last_seen, created_at, shadow, problems } = device;
  return {
    id,
    name,
    labels: labelsOf(shadow.tags),
    online,
    lastSeen: last_seen,
    createdAt: created_at,
    firmware: firmwareVersion(shadow.state.reported),
    shadowVersion: shadow.version,
    problems,
    values: Object.fromEntries(pointers.map((pointer) => [pointer, textAt(shadow.state.reported, pointer)])),
  };
}

/** What is at a JSON pointer, as text; empty where nothing is. */
function textAt(value: Json, pointer: string): string {
  let found: Json | undefined = value;
  for (const name of membersOf(pointer))
    found = isJsonObject(found) && Object.hasOwn(found, name) ? found[name] : undefined;
  if (found === undefined) return "";
  return typeof found === "string" ? found : JSON.stringify(found);
}

/** Where the version of the firmware comes from, for a tooltip. */
export const firmwareHint =
  "Version of the firmware, as the device reports it in ota.fw_version of its shadow";
