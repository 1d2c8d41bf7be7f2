import type { FleetSummary } from "@devmesh/contracts/model/fleet";

/** How many devices run a version of the firmware. */
export interface FirmwareShare {
  /** Null for the devices that report none; "others" are those beyond the most frequent. */
  readonly version: string | null | "others";
  readonly devices: number;
}

/** The most frequent versions of the firmware first, then all others together, then the devices that report none. */
export function firmwareShares({ firmware, other_firmware, no_firmware }: FleetSummary): FirmwareShare[] {
  return [
    ...firmware,
    ...(other_firmware > 0 ? [{ version: "others", devices: other_firmware }] : []),
    ...(no_firmware > 0 ? [{ version: null, devices: no_firmware }] : []),
  ];
}
