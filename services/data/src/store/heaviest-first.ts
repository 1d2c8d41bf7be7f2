/** The weight of a device's records. */
export interface DeviceBytes {
  readonly deviceId: string;
  readonly bytes: number;
}

/** A record that may be deleted. */
export interface WeighedRecord {
  readonly id: number;
  readonly deviceId: string;
  readonly weight: number;
}

/** How many records to delete. */
export interface Removal {
  readonly limit: number;
  /** Fewer than `limit` if they have this weight, in bytes. */
  readonly enough: number;
}

/**
 * Chooses the records to delete when a store is over its bound: repeatedly the oldest one of the heaviest device.
 * `oldestOf` returns the next record of a device, null when there is none, and `unread`, which ends the choice, when it
 * was not looked up.
 */
export function chooseHeaviestFirst(
  devices: readonly DeviceBytes[],
  oldestOf: (deviceId: string) => WeighedRecord | null | "unread",
  { limit, enough }: Removal,
): WeighedRecord[] {
  const left = devices.map(({ deviceId, bytes }) => ({ deviceId, bytes }));
  const chosen: WeighedRecord[] = [];
  let weight = 0;
  while (chosen.length < limit && weight < enough) {
    const heaviest = left.reduce((most, device) => (device.bytes > most.bytes ? device : most), nobody);
    if (heaviest === nobody) break;
    const record = oldestOf(heaviest.deviceId);
    if (record === "unread") break;
    if (record === null) {
      heaviest.bytes = nobody.bytes;
      continue;
    }
    chosen.push(record);
    weight += record.weight;
    heaviest.bytes -= record.weight;
  }
  return chosen;
}

const nobody = { deviceId: "", bytes: Number.NEGATIVE_INFINITY };

/** The devices that records of the weight `enough` are chosen from; given heaviest first. */
export function payersOf(devices: readonly DeviceBytes[], enough: number): readonly DeviceBytes[] {
  let bytes = 0;
  for (const [at, device] of devices.entries()) {
    bytes += device.bytes;
    // The weight that each of them keeps.
    if ((bytes - enough) / (at + 1) >= (devices[at + 1]?.bytes ?? 0)) return devices.slice(0, at + 1);
  }
  return devices;
}
