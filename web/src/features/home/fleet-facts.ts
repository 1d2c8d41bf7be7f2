import { DeviceCondition } from "@devmesh/contracts/model/device-condition";
import type { DeviceFacets } from "@devmesh/contracts/model/device-facets";
import { loginRefusals } from "@devmesh/contracts/model/diagnostics";
import type { FleetSummary } from "@devmesh/contracts/model/fleet";

/** How many devices run a version of the firmware. */
export interface FirmwareShare {
  /** Null for the devices that report none; "others" are those beyond the most frequent. */
  readonly version: string | null | "others";
  readonly devices: number;
}

/** The most frequent versions of the firmware first, then all others together, then the devices that report none. */
export function firmwareShares({
  firmware,
  other_firmware,
  no_firmware,
}: Pick<FleetSummary, "firmware" | "other_firmware" | "no_firmware">): FirmwareShare[] {
  return [
    ...firmware,
    ...(other_firmware > 0 ? [{ version: "others", devices: other_firmware }] : []),
    ...(no_firmware > 0 ? [{ version: null, devices: no_firmware }] : []),
  ];
}

/** The condition of a device that had a problem in the last day; of `any` where this release does not know it. */
export function problemCondition(problem: string): DeviceCondition {
  const known = DeviceCondition.safeParse({ problem: { in: [problem] } });
  return known.success ? known.data : { problem: { in: ["any"] } };
}

/** Devices with one problem. */
export interface ProblemGroup {
  /** Reason of an entry of the diagnostics, or its name where it has none. */
  readonly problem: string;
  readonly devices: number;
  /** The device cannot connect. */
  readonly isRefusal: boolean;
}

const refusals: ReadonlySet<string> = new Set(["login_refused", ...loginRefusals]);

/** The problems of devices, refused logins first, then the most frequent. */
export function groupedProblems({ facets }: DeviceFacets): ProblemGroup[] {
  return (facets.problem ?? [])
    .map(({ value, count }) => ({
      problem: value ?? "",
      devices: count,
      isRefusal: refusals.has(value ?? ""),
    }))
    .sort((one, other) => Number(other.isRefusal) - Number(one.isRefusal) || other.devices - one.devices);
}
