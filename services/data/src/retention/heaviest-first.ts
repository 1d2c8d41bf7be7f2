/** What the records of a device weigh. */
export interface DeviceBytes {
  readonly deviceId: string;
  readonly bytes: number;
}

/** A record that may go. */
export interface WeighedRecord {
  readonly id: number;
  readonly deviceId: string;
  readonly weight: number;
}

/** How many records go. */
export interface Removal {
  readonly limit: number;
  /** Fewer than `limit` go if these weigh so much, in bytes. */
  readonly enough: number;
}

/**
 * Chooses the records that go when a store is over its bound: again and again the oldest one of the device that
 * weighs most. So no device loses a record while another weighs more, and devices of equal weight lose their oldest
 * records by turns.
 *
 * `oldestOf` returns the record of a device that follows those it returned before, null where there is none, and
 * `unread` where it was not looked up, at which the choice ends.
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

/** The devices that records weighing `enough` are chosen from; given heaviest first. */
export function payersOf(devices: readonly DeviceBytes[], enough: number): readonly DeviceBytes[] {
  let bytes = 0;
  for (const [at, device] of devices.entries()) {
    bytes += device.bytes;
    // What each of them keeps if they pay all of it.
    if ((bytes - enough) / (at + 1) >= (devices[at + 1]?.bytes ?? 0)) return devices.slice(0, at + 1);
  }
  return devices;
}
