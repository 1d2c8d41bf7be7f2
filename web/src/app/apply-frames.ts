import { Alert } from "@devmesh/contracts/model/alert";
import { Device } from "@devmesh/contracts/model/device";
import { Job } from "@devmesh/contracts/model/job";
import type { Notification } from "@devmesh/contracts/model/notification";
import type { QueryClient } from "@tanstack/react-query";
import type { ApiClient } from "../api/api-client.ts";
import { queryKeys } from "../api/query-keys.ts";
import { applyToLists, type DeviceChange } from "../features/devices/shared/device-lists.ts";
import { rowOf } from "../features/devices/shared/device-row.ts";

/**
 * Writes frames into the query cache. A device that may belong to a list, but of which the frames have too little data,
 * is read.
 */
export function updateCache(
  api: ApiClient,
  queries: QueryClient,
  frames: readonly Notification[],
  signal: AbortSignal,
): void {
  const unknown = applyFrames(queries, frames);
  if (unknown.size > 0) void readDevices(api, queries, unknown, signal);
}

/** Writes frames into the query cache. Returns the ids of devices to be read. */
export function applyFrames(queries: QueryClient, frames: readonly Notification[]): ReadonlySet<string> {
  const changes: DeviceChange[] = [];
  const alerts: Alert[] = [];
  for (const { id, name, data, timestamp } of frames) {
    if (name === "alert") {
      const alert = Alert.safeParse(data).data;
      if (alert !== undefined) alerts.push(alert);
    }
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
        changes.push({ kind: "row", row: rowOf(device.data), device: device.data });
        // The response to a write may arrive before the frames of earlier writes, which must not undo it.
        // A device that is created again starts with a lower version.
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
      case "job": {
        const job = Job.safeParse(data).data;
        if (job === undefined) break;
        queries.setQueryData<Job>(queryKeys.job(id), job);
        queries.setQueryData<readonly Job[]>(queryKeys.jobs, (held) => held && withJob(held, job));
        break;
      }
      case "keys":
      case "customers":
      case "webhooks":
        void queries.invalidateQueries({ queryKey: queryKeys[name] });
        break;
    }
  }
  if (alerts.length > 0) applyAlerts(queries, alerts);
  return changes.length > 0 ? applyToLists(queries, changes) : new Set();
}

/** Jobs, newest first, with one that has changed or is new. */
function withJob(jobs: readonly Job[], job: Job): readonly Job[] {
  if (!jobs.some(({ id }) => id === job.id)) return [job, ...jobs];
  return jobs.map((held) => (held.id === job.id ? job : held));
}

/** Writes changed alerts, in their order; what counts and lists them is read again. */
function applyAlerts(queries: QueryClient, alerts: readonly Alert[]): void {
  for (const alert of alerts) queries.setQueryData<Alert>(queryKeys.alert(alert.id), alert);
  void queries.invalidateQueries({ queryKey: queryKeys.alertSummary });
  void queries.invalidateQueries({ queryKey: queryKeys.alerts });
}

/** Maximum of devices that are read one by one; for more of them, the lists are read again. */
const mostRead = 50;

/** Reads devices into the lists that they belong to, except those that cannot be read. */
async function readDevices(
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
    changes.push({ kind: "row", row: rowOf(device), device });
  };
  await Promise.allSettled([...ids].map(read));
  if (!signal.aborted) applyToLists(queries, changes);
}

function withPresence(device: Device, online: boolean, at: string): Device {
  const { shadow } = device;
  const reported = { ...shadow.state.reported, online };
  return { ...device, online, last_seen: at, shadow: { ...shadow, state: { ...shadow.state, reported } } };
}
