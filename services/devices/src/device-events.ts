import type { deviceEvents } from "@devmesh/contracts/devices";
import { hasPointers } from "@devmesh/contracts/model/acl";
import type { Device } from "@devmesh/contracts/model/device";
import type { Diagnosis, diagnosisFrames } from "@devmesh/contracts/model/diagnostics";
import type { Throttling } from "@devmesh/contracts/model/notification";
import type { Clock } from "@devmesh/service-kit/clock";
import type { Publisher } from "@devmesh/service-kit/events/publisher";
import type { CallContext } from "@devmesh/service-kit/rpc/context";
import type { z } from "zod";

/** Publishes what happened to devices, after it is stored. A lost event is logged and fails nothing. */
export type DeviceEventPublisher = ReturnType<typeof createDeviceEventPublisher>;

export function createDeviceEventPublisher(publisher: Publisher<typeof deviceEvents>, clock: Clock) {
  const about = (id: string) => ({ id, timestamp: clock.now().toISOString() });
  const withDevice = (device: Device) => ({
    ...about(device.id),
    device,
    ...(hasPointers(device.acl) && { acl: device.acl }),
  });
  return {
    created: (device: Device, call: CallContext): Promise<unknown> =>
      publisher.created(withDevice(device), { call }),
    updated: (device: Device, call: CallContext): Promise<unknown> =>
      publisher.updated(withDevice(device), { call }),
    throttled: (id: string, throttling: z.infer<typeof Throttling>, call: CallContext): Promise<unknown> =>
      publisher.throttled({ ...about(id), ...throttling }, { call }),
    /** `timestamp`: when it happened; every replica publishes it, and the stream keeps one. */
    diagnosed(
      id: string,
      diagnosis: Diagnosis & { readonly name: (typeof diagnosisFrames)[number] },
      timestamp: string,
      call: CallContext,
    ): Promise<unknown> {
      const dedupeId = `diagnosed/${id}/${diagnosis.name}/${diagnosis.reason}/${timestamp}`;
      return publisher.diagnosed({ id, timestamp, ...diagnosis }, { dedupeId, call });
    },
    /** The stream keeps one of the events with the same `dedupeId`. */
    deleted: (id: string, labels: readonly string[], dedupeId: string, call: CallContext): Promise<unknown> =>
      publisher.deleted({ ...about(id), labels: [...labels] }, { dedupeId, call }),
  };
}
