import type { Device, DevicePatch } from "@devmesh/contracts/model/device";
import type { ApiClient } from "../../../api/api-client.ts";
import { ApiProblem } from "../../../api/api-problem.ts";

/** Maximum of attempts while others write the same device. */
const attempts = 8;

/** The current device; `conflict` if it was left as it is. */
interface PatchOutcome {
  readonly kind: "saved" | "conflict";
  readonly device: Device;
}

/**
 * Reads a device and changes it by the patch made from what was read; null leaves it. The `ETag` covers the whole
 * device, so a write of others in between, such as the device's own report, causes a retry.
 */
export async function patchDevice(
  api: ApiClient,
  id: string,
  patchOf: (device: Device) => DevicePatch | null,
  signal?: AbortSignal,
): Promise<PatchOutcome> {
  const options = { params: { id }, ...(signal && { signal }) };
  for (let attempt = 1; ; attempt += 1) {
    const read = await api.exchange("readDevice", options);
    const body = patchOf(read.body);
    if (body === null) return { kind: "conflict", device: read.body };
    const headers = { "If-Match": read.headers.get("ETag") ?? "*" };
    try {
      return { kind: "saved", device: await api.call("patchDevice", { ...options, body, headers }) };
    } catch (error) {
      if (attempt === attempts || !(error instanceof ApiProblem) || error.status !== 412) throw error;
    }
  }
}
