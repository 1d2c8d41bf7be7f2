import type { ListedDevice } from "../devices/shared/device-row.ts";

/** How many devices run a version of the firmware. */
export interface FirmwareShare {
  /** Null for the devices that report none; "others" are those beyond the most frequent. */
  readonly version: string | null | "others";
  readonly devices: number;
}

/** Versions that are shown one by one. */
const shownVersions = 6;

/** The most frequent versions of the firmware first, then all others together, then the devices that report none. */
export function firmwareShares(rows: readonly Pick<ListedDevice, "firmware">[]): FirmwareShare[] {
  const counts = new Map<string, number>();
  for (const { firmware } of rows)
    if (firmware !== null) counts.set(firmware, (counts.get(firmware) ?? 0) + 1);
  const byCount = [...counts]
    .map(([version, devices]): FirmwareShare => ({ version, devices }))
    .sort(
      (one, other) => other.devices - one.devices || (String(one.version) < String(other.version) ? -1 : 1),
    );
  const total = (shares: readonly FirmwareShare[]) => shares.reduce((sum, { devices }) => sum + devices, 0);
  const others = total(byCount.slice(shownVersions));
  const none = rows.length - total(byCount);
  return [
    ...byCount.slice(0, shownVersions),
    ...(others > 0 ? [{ version: "others", devices: others } as const] : []),
    ...(none > 0 ? [{ version: null, devices: none } as const] : []),
  ];
}

/** How many devices are offline and were not seen since `before`, in Unix milliseconds, or never. */
export function silentSince(
  rows: readonly Pick<ListedDevice, "online" | "lastSeen" | "createdAt">[],
  before: number,
): number {
  return rows.filter(
    ({ online, lastSeen, createdAt }) => !online && Date.parse(lastSeen ?? createdAt) < before,
  ).length;
}
