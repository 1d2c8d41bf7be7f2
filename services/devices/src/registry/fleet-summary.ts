import { setImmediate } from "node:timers/promises";
import { devices } from "@devmesh/contracts/devices";
import { type FleetSummary, silentHours } from "@devmesh/contracts/model/fleet";
import type { Clock } from "@devmesh/service-kit/clock";
import type { Implementation } from "@devmesh/service-kit/rpc/implementation";
import type { DeviceStore, FirmwareCount } from "../store/device-store.ts";
import type { FacetCount } from "../store/facet-count.ts";

/**
 * The next count begins at the earliest so many milliseconds after the last one began, and so many times as long as
 * that one took: it reads all devices, which is at most 2 % of a processor for however many.
 */
const leastRestMs = 10_000;
const restFactor = 50;

/** Versions and labels that are listed one by one. */
const listedVersions = 6;
const listedLabels = 20;

export interface FleetSummaryOptions {
  readonly store: Pick<DeviceStore, "countBy" | "countByFirmware">;
  readonly clock: Clock;
}

/** A summary, and when it is due to be counted again and when it is too old to be answered; on the monotonic clock. */
interface CountedFleet {
  readonly summary: FleetSummary;
  readonly dueMs: number;
  readonly staleMs: number;
}

/** All devices in numbers, counted once for all callers, and only while any asks. */
export function createSummarizeFleet({
  store,
  clock,
}: FleetSummaryOptions): Implementation<typeof devices>["summarizeFleet"] {
  let last: CountedFleet | null = null;
  let counting: Promise<CountedFleet> | null = null;

  /** Ends by the deadline of any caller, not with the first one. */
  async function count(): Promise<CountedFleet> {
    const beganMs = clock.monotonicMs();
    const now = clock.now();
    const times = silentHours.map((hours) => now.getTime() - hours * 3_600_000);
    const signal = AbortSignal.timeout(devices.methods.summarizeFleet.deadlineMs);
    const versions = await store.countByFirmware(times, signal);
    // SQLite counts in this thread: between the two others have their turn.
    await setImmediate();
    const labels = await store.countBy("label", {}, signal);
    const restMs = Math.max(leastRestMs, restFactor * (clock.monotonicMs() - beganMs));
    const summary = { counted_at: now.toISOString(), ...ofVersions(versions), ...ofLabels(labels) };
    return { summary, dueMs: beganMs + restMs, staleMs: beganMs + 2 * restMs };
  }

  function countOnce(): Promise<CountedFleet> {
    counting ??= count().finally(() => {
      counting = null;
    });
    return counting;
  }

  return async () => {
    const nowMs = clock.monotonicMs();
    if (last !== null && nowMs < last.dueMs) return last.summary;
    const next = countOnce().then((counted) => {
      last = counted;
      return counted.summary;
    });
    if (last === null || nowMs >= last.staleMs) return await next;
    // A failure is that of the callers that wait, once the last count is too old.
    next.catch(() => undefined);
    return last.summary;
  };
}

function ofVersions(counts: readonly FirmwareCount[]) {
  const versions = counts
    .flatMap(({ version, devices }) => (version === null ? [] : [{ version, devices }]))
    .sort((one, other) => other.devices - one.devices || (one.version < other.version ? -1 : 1));
  return {
    devices: total(counts),
    online: counts.reduce((sum, { online }) => sum + online, 0),
    firmware: versions.slice(0, listedVersions),
    other_firmware: total(versions.slice(listedVersions)),
    no_firmware: total(counts.filter(({ version }) => version === null)),
    silent: silentHours.map((hours, nth) => ({
      hours,
      devices: counts.reduce((sum, { silent }) => sum + (silent[nth] ?? 0), 0),
    })),
  };
}

function ofLabels({ values, others }: FacetCount) {
  const labels = values.map(({ value, count }) => ({ label: value ?? "", devices: count }));
  return {
    labels: labels.slice(0, listedLabels),
    other_labels: total(labels.slice(listedLabels)) + others,
  };
}

function total(counts: readonly { readonly devices: number }[]): number {
  return counts.reduce((sum, { devices }) => sum + devices, 0);
}
