import { Device } from "@devmesh/contracts/model/device";
import type { Notification } from "@devmesh/contracts/model/notification";
import type { QueryClient } from "@tanstack/react-query";
import { queryKeys } from "../api/query-keys.ts";
import {
  applyChanges,
  type DeviceChange,
  type DevicePages,
  type DeviceSelection,
} from "../devices/device-pages.ts";
import { rowOf } from "../devices/device-row.ts";

/** Puts what frames tell into the query cache: views show it without asking the server again. */
export function applyFrames(queries: QueryClient, frames: readonly Notification[]): void {
  const changes: DeviceChange[] = [];
  for (const { id, name, data, timestamp } of frames) {
    if (id === null) continue;
    switch (name) {
      case "online":
      case "offline": {
        const online = name === "online";
        changes.push({ kind: "presence", id, online, at: timestamp });
        queries.setQueryData<Device>(queryKeys.device(id), (device) =>
          device === undefined ? undefined : withPresence(device, online, timestamp),
        );
        break;
      }
      case "created":
      case "updated": {
        const device = Device.safeParse(data);
        if (!device.success) break;
        changes.push({ kind: "row", row: rowOf(device.data) });
        // Only where a view has read it: others would not notice what is held for them.
        queries.setQueryData<Device>(queryKeys.device(id), (held) =>
          held === undefined || held.shadow.version > device.data.shadow.version ? held : device.data,
        );
        break;
      }
      case "deleted":
        changes.push({ kind: "deleted", id: id });
        void queries.invalidateQueries({ queryKey: queryKeys.device(id) });
        break;
      case "keys":
        void queries.invalidateQueries({ queryKey: queryKeys.keys });
        break;
      case "customers":
        void queries.invalidateQueries({ queryKey: queryKeys.customers });
        break;
    }
  }
  if (changes.length > 0) applyToLists(queries, changes);
}

function applyToLists(queries: QueryClient, changes: readonly DeviceChange[]): void {
  for (const [queryKey, pages] of queries.getQueriesData<DevicePages>({ queryKey: queryKeys.deviceLists })) {
    if (pages === undefined) continue;
    const selection = queryKey[1] as DeviceSelection;
    const changed = applyChanges(pages, selection, changes);
    queries.setQueryData(queryKey, changed.pages);
    // A device that came online is not known by its presence alone.
    if (changed.unknown.length > 0) void queries.invalidateQueries({ queryKey, exact: true });
  }
}

function withPresence(device: Device, online: boolean, at: string): Device {
  const { shadow } = device;
  const reported = { ...shadow.state.reported, online };
  return { ...device, online, last_seen: at, shadow: { ...shadow, state: { ...shadow.state, reported } } };
}
