import type { devices } from "@devmesh/contracts/devices";
import { isJsonObject, type Json, type JsonObject } from "@devmesh/contracts/model/json";
import type { Clock } from "@devmesh/service-kit/clock";
import { isReason } from "@devmesh/service-kit/errors";
import { createCallContext } from "@devmesh/service-kit/rpc/context";
import type { Client } from "@devmesh/service-kit/rpc/implementation";
import type { StoredExecution } from "../store/execution-store.ts";
import type { StoredFirmware } from "../store/firmware-store.ts";
import { type ReadDevice, type VersionReader, valueAt } from "./version-reader.ts";

/** How long `devices` may take, in milliseconds. */
const patchMs = 5_000;

/** How often a shadow is read again that others change meanwhile. */
const mostConflicts = 10;

const principal = { kind: "master" } as const;

export interface ShadowOffersOptions {
  readonly devices: Pick<Client<typeof devices>, "patchDevice">;
  readonly readDevice: VersionReader["readDevice"];
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** What a device reports of its download in `reported.ota`. */
interface OtaReport {
  readonly percent: number | null;
  /** What went wrong; null for nothing. */
  readonly error: StoredExecution["error"];
}

/** Firmware in `desired.ota`, which a device fetches by itself when it is awake. */
export function createShadowOffers({ devices, readDevice, clock, signal }: ShadowOffersOptions) {
  async function patch(
    { device_id: id, from_webhook: fromWebhook }: StoredExecution,
    shadow: JsonObject,
  ): Promise<void> {
    using call = createCallContext({ timeoutMs: patchMs, signal, fromWebhook, clock });
    await devices.patchDevice({ id, principal, patch: { shadow } }, call);
  }

  return {
    /** Writes the offer of an execution in place of any other. */
    offer(execution: StoredExecution, firmware: StoredFirmware, url: string): Promise<void> {
      const { version, size, sha256, signature } = firmware;
      const ota = { url, version, size, sha256, signature, execution: execution.id };
      return patch(execution, { state: { desired: { ota } } });
    },

    isOffered: async ({ id, device_id }: StoredExecution) => offeredIn(await readDevice(device_id)) === id,

    /** Removes the offer of an execution, unless another one has taken its place. */
    async withdraw(execution: StoredExecution): Promise<void> {
      const { id, device_id, action } = execution;
      if (action.kind !== "firmware" || action.via !== "shadow") return;
      for (let conflicts = 0; ; conflicts++) {
        try {
          const device = await readDevice(device_id);
          if (offeredIn(device) !== id) return;
          const { version } = device.shadow;
          return await patch(execution, { version, state: { desired: { ota: null } } });
        } catch (error) {
          if (isReason(error, "device_not_found")) return;
          if (!isReason(error, "version_conflict") || conflicts >= mostConflicts) throw error;
        }
      }
    },
  };
}
export type ShadowOffers = ReturnType<typeof createShadowOffers>;

/** The execution whose offer a shadow has. */
function offeredIn({ shadow }: ReadDevice): Json | undefined {
  return valueAt(shadow.state.desired, "/ota/execution");
}

/** What a device has reported of a download since a time, in Unix milliseconds. */
export function otaReportIn({ shadow }: Pick<ReadDevice, "shadow">, since: number): OtaReport {
  const { state, metadata } = shadow;
  const reported = (member: string): Json | undefined => {
    const times = valueAt(metadata.reported, `/ota/${member}`);
    const isNew = isJsonObject(times) && typeof times.timestamp === "number" && times.timestamp >= since;
    return isNew ? valueAt(state.reported, `/ota/${member}`) : undefined;
  };
  const [percent, code, message] = [reported("percent"), reported("code"), reported("message")];
  const isError = typeof code === "number" && Number.isInteger(code) && code !== 0;
  return {
    percent: typeof percent === "number" && percent >= 0 && percent <= 100 ? Math.floor(percent) : null,
    error: isError ? { code, message: typeof message === "string" ? message : "" } : null,
  };
}
