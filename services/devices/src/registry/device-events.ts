import type { deviceEvents } from "@devmesh/contracts/devices";
import type { Device } from "@devmesh/contracts/model/device";
import type { Throttling } from "@devmesh/contracts/model/notification";
import type { Clock } from "@devmesh/service-kit/clock";
import type { CallContext } from "@devmesh/service-kit/context";
import type { Publisher } from "@devmesh/service-kit/events";
import type { z } from "zod";

/** Tells the mesh what happened to devices; best effort, what happened is stored before it is told. */
export interface DeviceNotices {
  created(device: Device, call: CallContext): Promise<void>;
  updated(device: Device, call: CallContext): Promise<void>;
  throttled(id: string, throttling: z.infer<typeof Throttling>, call: CallContext): Promise<void>;
  /** The stream keeps one of the events with the same `eventId`. */
  deleted(id: string, eventId: string, call: CallContext): Promise<void>;
}

/** Notices as events of the mesh. */
export function createDeviceNotices(publisher: Publisher<typeof deviceEvents>, clock: Clock): DeviceNotices {
  const about = (id: string) => ({ id, timestamp: clock.now().toISOString() });
  const { bestEffort } = publisher;
  return {
    created: (device, call) => bestEffort.created({ ...about(device.id), device }, { call }),
    updated: (device, call) => bestEffort.updated({ ...about(device.id), device }, { call }),
    throttled: (id, throttling, call) => bestEffort.throttled({ ...about(id), ...throttling }, { call }),
    deleted: (id, dedupeId, call) => bestEffort.deleted(about(id), { dedupeId, call }),
  };
}
