import { Device } from "@devmesh/contracts/model/device";
import type { Notification } from "@devmesh/contracts/model/notification";
import type { QueryClient } from "@tanstack/react-query";
import type { ApiClient } from "../api/api-client.ts";
import { queryKeys } from "../api/query-keys.ts";
import {
  applyChanges,
  type DeviceChange,
  type DevicePages,
  type DeviceSelection,
} from "../devices/device-pages.ts";
import { rowOf } from "../devices/device-row.ts";

/**
 * Puts what frames tell into the query cache: views show it without asking the server again. Answers the ids of devices that
 * may belong into a list now, but of which too little is known: {@link readDevices} reads them.
 */
export function applyFrames(queries: QueryClient, frames: readonly Notification[]): ReadonlySet<string> {
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
        // Only where a view has read it: others would not notice what is held for them. The answer to a write may have come
        // before the frames of earlier ones; a device that is made anew begins with a lower version, too.
        queries.setQueryData<Device>(queryKeys.device(id), (held) =>
          held === undefined || (name === "updated" && held.shadow.version > device.data.shadow.version)
            ? held
            : device.data,
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
  return changes.length > 0 ? applyToLists(queries, changes) : new Set();
}

/** Most devices that are read one by one; beyond, a list is read anew. */
const mostRead = 50;

/** Reads devices and puts them into the lists that they belong to. Those that cannot be read are left out. */
export async function readDevices(
  api: ApiClient,
  queries: QueryClient,
  ids: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<void> {
  if (ids.size > mostRead) {
    await queries.invalidateQueries({ queryKey: queryKeys.deviceLists });
    return;
  }
  const changes: DeviceChange[] = [];
  const read = async (id: string) => {
    const device = await api.call("readDevice", { params: { id }, signal });
    changes.push({ kind: "row", row: rowOf(device) });
  };
  await Promise.allSettled([...ids].map(read));
  if (!signal.aborted) applyToLists(queries, changes);
}

/** Takes devices out of all lists that were deleted just now: the frame comes only when nothing of them is left, seconds later. */
export function forgetDevices(queries: QueryClient, ids: readonly string[]): void {
  applyToLists(
    queries,
    ids.map((id) => ({ kind: "deleted", id })),
  );
}

function applyToLists(queries: QueryClient, changes: readonly DeviceChange[]): ReadonlySet<string> {
  const unknown = new Set<string>();
  for (const [queryKey, pages] of queries.getQueriesData<DevicePages>({ queryKey: queryKeys.deviceLists })) {
    if (pages === undefined) continue;
    const selection = queryKey[1] as DeviceSelection;
    const changed = applyChanges(pages, selection, changes);
    queries.setQueryData(queryKey, changed.pages);
    for (const id of changed.unknown) unknown.add(id);
  }
  return unknown;
}

function withPresence(device: Device, online: boolean, at: string): Device {
  const { shadow } = device;
  const reported = { ...shadow.state.reported, online };
  return { ...device, online, last_seen: at, shadow: { ...shadow, state: { ...shadow.state, reported } } };
}
