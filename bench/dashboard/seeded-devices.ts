import { join } from "node:path";
import { defaultAcl } from "@devmesh/contracts/model/acl";
import { applyPatch } from "@devmesh/devices/shadow/apply-patch";
import { emptyShadow } from "@devmesh/devices/shadow/stored-shadow";
import type { DeviceStore } from "@devmesh/devices/store/device-store";
import { createSqliteDeviceStore } from "@devmesh/devices/store/device-store.sqlite";

/** Devices that share a commit. */
const batch = 1_000;

/**
 * Stores devices `device-0`, `device-1`, … in the data folder of a mesh before its start, with the store of `devices`.
 * They have no credentials.
 */
export async function seedDevices(dataDir: string, count: number): Promise<void> {
  const store = createSqliteDeviceStore(join(dataDir, "devices.db"));
  await seedStore(store, count);
  await store.close();
}

/** Stores devices in a store of `devices`. */
export async function seedStore(store: Pick<DeviceStore, "insert">, count: number): Promise<void> {
  const { signal } = new AbortController();
  const now = Date.now();
  const stored = async (nth: number) => {
    const created_at = now - (count - nth) * 1_000;
    const shadow = applyPatch(
      emptyShadow(created_at),
      {
        state: { reported: { fw_version: `1.${nth % 7}.${nth % 13}`, app: { level: nth % 100 } } },
        tags: { labels: [`site-${nth % 40}`, nth % 3 === 0 ? "pump" : "lamp"] },
      },
      created_at,
    );
    const device = {
      id: `device-${nth}`,
      name: `Device number ${nth}`,
      acl: defaultAcl,
      delta_metadata: true,
      shadow,
      created_at,
    };
    await store.insert(device, null, signal);
  };
  for (let first = 0; first < count; first += batch) {
    const size = Math.min(batch, count - first);
    await Promise.all(Array.from({ length: size }, (_, at) => stored(first + at)));
  }
}
