import { join } from "node:path";
import { openSqliteDataStore } from "@devmesh/data/store/data-store.sqlite";

/** Records that share a commit. */
const batch = 5_000;

/** How far back the first record is, in milliseconds: within what a trial reads by default, and what is kept. */
const spanMs = 6 * 24 * 3_600_000;

/**
 * Stores records of `device-0`, `device-1`, … in the data folder of a mesh before its start, with the store of `data`:
 * the newest one now, and all as far apart.
 */
export async function seedRecords(
  dataDir: string,
  { records, devices }: { readonly records: number; readonly devices: number },
): Promise<void> {
  const store = openSqliteDataStore(join(dataDir, "data.db"));
  const now = Date.now();
  for (let first = 0; first < records; first += batch) {
    const messages = Array.from({ length: Math.min(batch, records - first) }, (_, at) => {
      const nth = first + at;
      const deviceId = `device-${nth % devices}`;
      const values = { temperature: 20 + (nth % 10), humidity: 40 + ((nth * 7919) % 4000) / 100, seq: nth };
      return {
        delivery: null,
        timestamp: now - Math.floor(((records - nth) / records) * spanMs),
        deviceId,
        topic: `db/${deviceId}/telemetry`,
        payload: Buffer.from(JSON.stringify(values)),
        encoding: "text" as const,
      };
    });
    await store.append(messages);
  }
  await store.close();
}
