import { devices } from "@devmesh/contracts/devices";
import { type FleetSummary, silentHours } from "@devmesh/contracts/model/fleet";
import type { Clock } from "@devmesh/service-kit/clock";
import type { Implementation } from "@devmesh/service-kit/rpc/implementation";
import type { DeviceStore, FirmwareCount } from "../store/device-store.ts";

/** Largest age of an answer, in milliseconds: the store reads all devices for it. */
const freshMs = 10_000;
/** Versions that are listed one by one. */
const listedVersions = 6;

export interface FleetSummaryOptions {
  readonly store: Pick<DeviceStore, "countByFirmware">;
  readonly clock: Clock;
}

/** All devices in numbers; callers share an answer, also one that is being read, until it is too old. */
export function createSummarizeFleet({
  store,
  clock,
}: FleetSummaryOptions): Implementation<typeof devices>["summarizeFleet"] {
  let last: { readonly untilMs: number; readonly summary: Promise<FleetSummary> } | null = null;

  /** Ends by the deadline of any caller, not with the first one. */
  async function read(): Promise<FleetSummary> {
    const now = clock.now().getTime();
    const times = silentHours.map((hours) => now - hours * 3_600_000);
    const { deadlineMs } = devices.methods.summarizeFleet;
    try {
      return summaryOf(await store.countByFirmware(times, AbortSignal.timeout(deadlineMs)));
    } catch (error) {
      last = null;
      throw error;
    }
  }

  return async () => {
    const nowMs = clock.monotonicMs();
    if (last === null || nowMs >= last.untilMs) last = { untilMs: nowMs + freshMs, summary: read() };
    return last.summary;
  };
}

function summaryOf(counts: readonly FirmwareCount[]): FleetSummary {
  const versions = counts
    .flatMap(({ version, devices }) => (version === null ? [] : [{ version, devices }]))
    .sort((one, other) => other.devices - one.devices || (one.version < other.version ? -1 : 1));
  return {
    devices: total(counts),
    firmware: versions.slice(0, listedVersions),
    other_firmware: total(versions.slice(listedVersions)),
    no_firmware: total(counts.filter(({ version }) => version === null)),
    silent: silentHours.map((hours, nth) => ({
      hours,
      devices: counts.reduce((sum, { silent }) => sum + (silent[nth] ?? 0), 0),
    })),
  };
}

function total(counts: readonly { readonly devices: number }[]): number {
  return counts.reduce((sum, { devices }) => sum + devices, 0);
}
