import type { Device, DevicePatch } from "@devmesh/contracts/model/device";
import type { ApiClient } from "../../../api/api-client.ts";
import { ApiProblem } from "../../../api/api-problem.ts";

/** A change of a value that a user has seen. */
interface DeviceChange {
  readonly id: string;
  readonly patch: DevicePatch;
  /** Whether the device still has the value that the user saw. */
  readonly isAsRead: (device: Device) => boolean;
  readonly signal?: AbortSignal;
}

/** The outcome with the current device: `conflict` if another user changed the value. */
export type DeviceChangeOutcome = { readonly kind: "saved" | "conflict"; readonly device: Device };

/** Maximum of attempts while others write other parts of the device. */
const attempts = 8;

/**
 * Changes a device only if it still has the value that the user saw. The `ETag` covers the whole device, so writes to
 * its other parts, such as the device's own reports, cause a retry.
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
