import type { Device, DevicePatch } from "@devmesh/contracts/model/device";
import type { ApiClient } from "../api/api-client.ts";
import { ApiProblem } from "../api/api-problem.ts";

/** A change of what somebody has looked at. */
interface DeviceChange {
  readonly id: string;
  readonly patch: DevicePatch;
  /** Whether the device is, in what the change is about, as it was looked at. */
  readonly isAsRead: (device: Device) => boolean;
  readonly signal?: AbortSignal;
}

/** What came of it: `conflict` when somebody else changed it meanwhile, with the device as it is now. */
export type DeviceChangeOutcome = { readonly kind: "saved" | "conflict"; readonly device: Device };

/** Attempts against others that write something else of the device meanwhile: it reports every now and then. */
const attempts = 8;

/**
 * Changes a device only if it is still as it was looked at. The `ETag` covers all of the device, so what others write
 * elsewhere in it, the device's own reports among that, makes it be read and tried again.
 */
export async function changeDevice(
  api: ApiClient,
  { id, patch, isAsRead, signal }: DeviceChange,
): Promise<DeviceChangeOutcome> {
  for (let attempt = 1; ; attempt += 1) {
    const read = await api.exchange("readDevice", { params: { id }, ...(signal && { signal }) });
    if (!isAsRead(read.body)) return { kind: "conflict", device: read.body };
    try {
      const device = await api.call("patchDevice", {
        params: { id },
        body: patch,
        headers: { "If-Match": read.headers.get("ETag") ?? "*" },
        ...(signal && { signal }),
      });
      return { kind: "saved", device };
    } catch (error) {
      if (attempt === attempts || !(error instanceof ApiProblem) || error.status !== 412) throw error;
    }
  }
}
