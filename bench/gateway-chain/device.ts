import { defaultAcl } from "@devmesh/contracts/model/acl";
import type { Device } from "@devmesh/contracts/model/device";

/** The device that both chains answer with. */
export const deviceId = "pump";

/** Subject of the raw chain. */
export const rawSubject = "bench.device";

/** About 1 KB of JSON as clients receive it. */
export const device: Device = {
  id: deviceId,
  name: "Pump 7, hall 2",
  acl: defaultAcl,
  online: true,
  last_seen: "2026-01-01T00:00:00.000Z",
  created_at: "2026-01-01T00:00:00.000Z",
  shadow: {
    state: {
      desired: { app: { target: 21.5, schedule: "weekdays 06:00-22:00, weekends 08:00-23:00" } },
      reported: {
        app: { target: 21.5, note: "serviced on the first of the month. ".repeat(10) },
        online: true,
        ota: { fw_version: "2.14.1", fw_id: "20251201-101500", app: "pump", arch: "esp32" },
      },
    },
    metadata: {
      desired: { app: { target: { timestamp: 1_767_225_600 }, schedule: { timestamp: 1_767_225_600 } } },
      reported: { app: { target: { timestamp: 1_767_225_600 } } },
    },
    tags: { labels: "hall-2,pumps" },
    version: 42,
    timestamp: 1_767_225_600,
  },
};
